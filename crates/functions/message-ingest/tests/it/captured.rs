//! Captured Lambda events: the exact response, and the items in the table.

use std::path::Path;

use antumbra_service::inbox::{MessageId, MessageReader, Source};

use crate::support::{Bench, event, record};
use antumbra_testkit::SendReply;

fn captured(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

async fn respond(bench: &Bench, event: &str) -> String {
    let summary = bench.handle(&serde_json::from_str(event).unwrap()).await;
    String::from_utf8(summary.response().unwrap().payload.to_vec()).unwrap()
}

/// The example of the architecture that this grew from: its ids, and the item it makes.
#[tokio::test]
async fn a_thermometer_message_is_stored() {
    let bench = Bench::new().await;
    let response = respond(&bench, &captured("thermometer.json")).await;
    assert_eq!(response, r#"{"batchItemFailures":[]}"#);
    let id = "1564669331-1564669332364-7d7efcff-bdcf-4d98-917e-d171d27cc0b4";
    assert_eq!(bench.ids("testThing").await, [id]);
    assert_eq!(
        bench.body("testThing", id).await.unwrap(),
        r#"{"epochTime":"1564669331","tempSensor1F":"72","tempSensor2F":"70","thingName":"testThing"}"#
    );
}

#[tokio::test]
async fn a_batch_of_a_standard_queue() {
    let bench = Bench::new().await;
    let response = respond(&bench, &captured("standard.json")).await;
    assert_eq!(response, r#"{"batchItemFailures":[]}"#);
    assert_eq!(
        bench.ids("testThing").await,
        [
            "1565033964-1565033965273-d8e31549-fd90-46f6-9588-2a28a9173f3a",
            "1565034142-1565034143557-e93620fb-073c-479d-8234-1fc5bfa5155c",
        ]
    );
    assert_eq!(
        bench.quarantined(),
        [(
            "UuidMissing".to_owned(),
            r#"{"epochTime": "1565034150"}"#.to_owned()
        )]
    );
}

#[tokio::test]
async fn a_batch_of_a_fifo_queue() {
    let bench = Bench::new().await;
    let response = respond(&bench, &captured("fifo.json")).await;
    assert_eq!(response, r#"{"batchItemFailures":[]}"#);
    let source = Source::new("300234010753370").unwrap();
    let id = "18849496460467696128-1573251510774-11d6ee51-4cc7-4302-9e22-7cd8afdaadf5";
    let message = bench
        .inbox
        .get(&source, &MessageId::new(id).unwrap())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        message
            .body
            .document()
            .pointer("/message")
            .unwrap()
            .as_str()
            .unwrap(),
        "Test message."
    );
}

#[tokio::test]
async fn batch_item_failures_name_the_failed_messages() {
    let bench = Bench::new().await;
    bench.quarantine.reply(|_| SendReply::deny("no"));
    let event = event([record("m-1", "nonsense", None)]).to_string();
    let response = respond(&bench, &event).await;
    assert_eq!(
        response,
        r#"{"batchItemFailures":[{"itemIdentifier":"m-1"}]}"#
    );
}

#[tokio::test]
async fn an_invalid_event_fails_as_a_whole() {
    let bench = Bench::new().await;
    for event in [
        "",
        "null",
        "{}",
        r#"{"Records":null}"#,
        r#"{"Records":[{}]}"#,
        r#"{"Records":[{"messageId":"m","body":"{}","eventSourceARN":"a","attributes":{"SentTimestamp":"soon"}}]}"#,
    ] {
        let summary = bench
            .ingest
            .process_batch(event.as_bytes(), antumbra_shadow::Timestamp::default())
            .await;
        assert!(summary.is_err(), "{event}");
    }
    assert_eq!(bench.endpoint.take_operations(), [""; 0]);
}
