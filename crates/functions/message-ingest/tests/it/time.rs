//! The function responds before its deadline, even if its services do not.

use std::time::{Duration, Instant};

use antumbra_testkit::dynamodb::Reply;

use crate::support::{Bench, event, record, text};

#[tokio::test]
async fn an_unresponsive_store_does_not_block_the_response() {
    let bench = Bench::new().await;
    bench.endpoint.script(|_| Reply::Hang);
    let records = [
        record("m-1", &text("lamp", 1), None),
        record("m-2", "nonsense", None),
        record("m-3", &text("door", 1), None),
    ];
    let began = Instant::now();
    let summary = bench
        .handle_within(&event(records), Duration::from_secs(2))
        .await;
    assert!(
        began.elapsed() < Duration::from_secs(2),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(summary.failed, ["m-1", "m-3"]);
    assert_eq!(summary.count("quarantined"), 1);
}

#[tokio::test]
async fn without_time_all_messages_fail() {
    let bench = Bench::new().await;
    let records = [
        record("m-1", &text("lamp", 1), None),
        record("m-2", "nonsense", None),
    ];
    let summary = bench.handle_within(&event(records), Duration::ZERO).await;
    assert_eq!(summary.failed, ["m-1", "m-2"]);
    assert_eq!(bench.ids("lamp").await, [""; 0]);
}

#[tokio::test]
async fn the_age_of_the_oldest_message_is_reported() {
    let bench = Bench::new().await;
    let summary = bench
        .handle(&event([record("m", &text("lamp", 1), None)]))
        .await;
    // It was sent in August 2019.
    assert!(summary.oldest.unwrap() > Duration::from_secs(6 * 365 * 86_400));
}
