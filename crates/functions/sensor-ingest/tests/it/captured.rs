//! Events as AWS documents them, all processed by the same function.

use antumbra_service::sensors::{Outcome, Value};
use antumbra_shadow::Timestamp;

use crate::support::{Home, TIME, counts};
use antumbra_service::clock::Clock;

async fn handle(home: &Home, name: &str) -> antumbra_lambda_kit::batch::BatchSummary {
    let root = env!("CARGO_MANIFEST_DIR");
    let path = format!("{root}/../../wire/testdata/queues/{name}.json");
    let event = std::fs::read(path).unwrap();
    let deadline = home.clock.now().after(TIME);
    home.ingest.process_batch(&event, deadline).await.unwrap()
}

#[tokio::test]
async fn a_standard_queue_event() {
    let home = Home::new(&["0xA", "xa7v9Dfadr7H"]).await;
    let summary = handle(&home, "sqs-standard").await;
    assert_eq!(
        (summary.count(Outcome::First.as_str()), summary.failed.len()),
        (2, 0)
    );
    let state = home.state("xa7v9Dfadr7H").await;
    let at = |text: &str| Timestamp::parse(text);
    assert_eq!(state.last_seen, at("2018-12-17T21:37:30.636Z"));
    assert_eq!(
        state.moment.map(|moment| moment.time()),
        at("2018-12-17T21:37:30Z")
    );
}

#[tokio::test]
async fn a_fifo_queue_event() {
    let home = Home::new(&["TestSensor"]).await;
    let summary = handle(&home, "sqs-fifo").await;
    assert_eq!(
        (summary.count(Outcome::First.as_str()), summary.failed.len()),
        (1, 0)
    );
}

#[tokio::test]
async fn an_event_of_several_rabbitmq_queues() {
    let home = Home::new(&["0xA", "TestSensor"]).await;
    let summary = handle(&home, "rabbitmq").await;
    assert_eq!(
        counts(&summary, [Outcome::First.as_str(), "quarantined"]),
        [2, 1]
    );
    assert!(summary.response().is_ok());
    let state = home.state("0xA").await;
    assert_eq!(state.value, Some(Value::whole(1)));
    assert_eq!(
        state.last_seen,
        Some(home.clock.now()),
        "last seen at its arrival, not in 1970"
    );
    let quarantined = home.quarantine.quarantined();
    assert_eq!(
        (quarantined[0].0.as_str(), quarantined[0].1.as_str()),
        ("/////w==", "NotText")
    );
}
