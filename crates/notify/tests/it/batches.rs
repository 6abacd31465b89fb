//! Number of calls per batch.

use antumbra_service::notifications::{ChannelLimits, Message};
use antumbra_testkit::SQS_LIMITS;
use serde_json::{Value, json};

use crate::channels::{Bench, Fakes};
use crate::stream::Record;

fn rule(name: &str, queue: &str) -> Value {
    json!({ "name": name, "to": { "sqs": { "queue": queue } } })
}

fn devices(count: usize) -> Vec<Record> {
    let device = |n: usize| Record::small(&format!("device-{n}"), n as u64);
    (0..count).map(device).collect()
}

#[tokio::test]
async fn distinct_keys_take_a_call_for_every_ten() {
    for count in [1, 9, 10, 11, 25, 100, 1000] {
        let bench = Bench::new(&[rule("a", "a"), rule("b", "b.fifo")]);
        let summary = bench.handle_records(&devices(count)).await;
        assert_eq!((summary.records, summary.matched), (count, count));
        assert_eq!((summary.sent, summary.retried), (2 * count, 0));
        for queue in ["sqs a", "sqs b.fifo"] {
            let calls = bench.at(queue).calls();
            assert_eq!(calls.len(), count.div_ceil(10), "{count} {queue}");
            let full = calls.iter().rev().skip(1).all(|call| call.len() == 10);
            assert!(full, "{count} {queue}");
        }
    }
}

#[tokio::test]
async fn registrations_fill_the_calls_of_their_queue_together() {
    let bench = Bench::new(&[
        rule("a", "shared"),
        rule("b", "shared"),
        rule("c", "shared"),
    ]);
    bench.handle_records(&devices(20)).await;
    let calls = bench.at("sqs shared").calls();
    assert_eq!(calls.iter().map(Vec::len).collect::<Vec<_>>(), [10; 6]);
}

#[tokio::test]
async fn changes_of_one_key_go_one_by_one() {
    let bench = Bench::new(&[rule("a", "a")]);
    let records: Vec<_> = (0..12).map(|n| Record::small("lamp", n)).collect();
    bench.handle_records(&records).await;
    let calls = bench.at("sqs a").calls();
    assert_eq!(calls.iter().map(Vec::len).collect::<Vec<_>>(), [1; 12]);
    let expected: Vec<Value> = (1..13).map(Value::from).collect();
    assert_eq!(bench.at("sqs a").json_at("/version"), expected);
}

/// The channel itself checks that no call is too large; here it is checked that none is too small.
#[tokio::test]
async fn bytes_split_a_batch_where_they_must_and_nowhere_else() {
    let sizes = [10_usize, 400, 10, 390, 700, 10, 10, 10, 650, 300, 20];
    let records: Vec<_> = sizes
        .iter()
        .zip(0..)
        .map(|(size, n)| {
            let (old, new) = (json!({}), json!({ "text": "x".repeat(*size) }));
            Record::reported(&format!("device-{n}"), n, old, new)
        })
        .collect();
    for batch_bytes in [1500, 2000, 4000, 8000] {
        let fakes = Fakes::default();
        fakes.at("sqs a").set_limits(ChannelLimits {
            batch_bytes,
            message_bytes: 1500,
            ..SQS_LIMITS
        });
        let bench = Bench::on(fakes, &[rule("a", "a")]);
        assert_eq!(bench.handle_records(&records).await.sent, sizes.len());
        let calls = bench.at("sqs a").calls();
        for pair in calls.windows(2) {
            let bytes: usize = pair[0].iter().map(Message::bytes).sum();
            let full = pair[0].len() == 10 || bytes + pair[1][0].bytes() > batch_bytes;
            assert!(full, "{batch_bytes}: a call with {bytes} bytes");
        }
        let keys: Vec<_> = bench.at("sqs a").json_at("/shadow/id");
        let expected: Vec<_> = (0..sizes.len())
            .map(|n| json!(format!("device-{n}")))
            .collect();
        assert_eq!(keys, expected, "{batch_bytes}");
    }
}
