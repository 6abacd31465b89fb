//! Every example of the contract, from the captured event to topic and payload, byte for byte.

use antumbra_service::inbox::{IncomingMessage, MessageParser, MessageWriter as _};
use antumbra_shadow::Timestamp;
use antumbra_wire::rules::Operation;

use crate::support::Bench;

const BODY: &str =
    r#"{"thingName":"testThing","epochTime":"1564669331","tempSensor1F":"72","tempSensor2F":"70"}"#;

fn file(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/exchanges/");
    std::fs::read_to_string(format!("{folder}{name}")).unwrap()
}

/// JSON without the white space between its members.
fn compact(json: &str) -> String {
    let mut quoted = false;
    let keep = |c: &char| {
        quoted ^= *c == '"';
        quoted || !c.is_whitespace()
    };
    json.chars().filter(keep).collect()
}

/// Handles a captured event and expects its response.
async fn check(bench: &Bench, operation: Operation, case: &str) {
    let event = file(&format!("{case}.event.json"));
    let summary = bench.handle(operation, event.as_bytes()).await.unwrap();
    assert_eq!((summary.code, summary.rejected), (None, false), "{case}");
    let expected = file(&format!("{case}.response.txt"));
    let (topic, payload) = expected.split_once("\n\n").unwrap();
    let expected = [(topic.to_owned(), compact(payload))];
    assert_eq!(bench.take_responses(), expected, "{case}");
}

/// Stores a message of the queue.
async fn store(bench: &Bench, place: &str, sent_milliseconds: u64, queue_id: &str) {
    let text = BODY.replace("1564669331", place);
    let incoming = IncomingMessage {
        text: &text,
        queue_id,
        sent_milliseconds,
    };
    let message = MessageParser::default().read(&incoming, Timestamp::default());
    bench.inbox.store(&message.unwrap()).await.unwrap();
}

#[tokio::test]
async fn query_and_get() {
    let bench = Bench::fresh().await;
    check(&bench, Operation::Query, "query-none").await;
    check(&bench, Operation::Get, "get-none").await;
    let queue_id = "7d7efcff-bdcf-4d98-917e-d171d27cc0b4";
    store(&bench, "1564669331", 1_564_669_332_364, queue_id).await;
    check(&bench, Operation::Query, "query").await;
    check(&bench, Operation::Get, "get").await;
}

#[tokio::test]
async fn next_and_delete() {
    let bench = Bench::fresh().await;
    // The given id need not exist.
    check(&bench, Operation::Next, "next-none").await;
    let queue_id = "d8e31549-fd90-46f6-9588-2a28a9173f3a";
    store(&bench, "1565033964", 1_565_033_965_273, queue_id).await;
    check(&bench, Operation::Next, "next-none").await;
    let queue_id = "e93620fb-073c-479d-8234-1fc5bfa5155c";
    store(&bench, "1565034142", 1_565_034_143_557, queue_id).await;
    check(&bench, Operation::Next, "next").await;
    // Twice: it never returns an error.
    check(&bench, Operation::Delete, "delete").await;
    check(&bench, Operation::Delete, "delete").await;
    check(&bench, Operation::Next, "next").await;
}
