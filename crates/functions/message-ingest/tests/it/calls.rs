//! DynamoDB calls of message ingest, counted at the endpoint.

use crate::support::{Bench, event, record, text};

#[tokio::test]
async fn one_write_a_message_and_one_more_a_source_and_hour() {
    let bench = Bench::new().await;
    let batch = |from: u32| {
        let records = (from..from + 10).map(|n| {
            let source = format!("thing-{}", n % 2);
            record(&format!("m-{n}"), &text(&source, n), None)
        });
        event(records)
    };
    bench.handle(&batch(0)).await;
    assert_eq!(bench.endpoint.take_operations(), ["PutItem"; 12]);
    bench.handle(&batch(10)).await;
    assert_eq!(bench.endpoint.take_operations(), ["PutItem"; 10]);
    // A redelivery is one call too.
    bench.handle(&batch(10)).await;
    assert_eq!(bench.endpoint.take_operations(), ["PutItem"; 10]);
    // A rejected message costs none.
    bench.handle(&event([record("m", "nonsense", None)])).await;
    assert_eq!(bench.endpoint.take_operations(), [""; 0]);
}

#[tokio::test]
async fn a_source_in_many_groups_is_recorded_once() {
    let bench = Bench::new().await;
    let records = (0..10).map(|n| {
        let group = format!("g-{n}");
        record(&format!("m-{n}"), &text("lamp", n), Some(&group))
    });
    bench.handle(&event(records)).await;
    assert_eq!(bench.endpoint.take_operations().len(), 11);
    assert!(bench.endpoint.most_at_once() > 1);
    assert!(bench.endpoint.most_at_once() <= 16);
}
