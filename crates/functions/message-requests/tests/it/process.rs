//! The binaries as Lambda runs them: an event of an IoT rule, and a response over AWS IoT.

use antumbra_dynamodb::{DynamoDbInbox, MESSAGES};
use antumbra_service::inbox::{Body, InboxMessage, MessageId, MessageWriter as _, Source};
use antumbra_shadow::Timestamp;
use antumbra_testkit::dynamodb::TestTable;
use antumbra_testkit::lambda::{AwsServer, Environment, Lambda, assert_rejects, unreachable_url};

use crate::support::event;

const DELETE: &str = env!("CARGO_BIN_EXE_antumbra-message-delete");
const GET: &str = env!("CARGO_BIN_EXE_antumbra-message-get");
const NEXT: &str = env!("CARGO_BIN_EXE_antumbra-message-next");
const QUERY: &str = env!("CARGO_BIN_EXE_antumbra-message-query");
const SEND: &str = env!("CARGO_BIN_EXE_antumbra-message-send");

/// Runs a function on one request and returns the published response.
fn response(
    binary: &str,
    environment: &Environment,
    aws: &AwsServer,
    topic: &str,
    payload: &str,
) -> String {
    let function = Lambda::start(binary, environment);
    let event = String::from_utf8(event(topic, payload.as_bytes())).unwrap();
    assert_eq!(function.invoke(&event).as_deref(), Ok("null"), "{topic}");
    let published = aws.requests().pop().unwrap();
    let operation = topic.split('/').nth(1).unwrap();
    let path = format!("/topics/response%2F{operation}%2Ft");
    assert!(published.first_line.contains(&path), "{published:?}");
    published.body
}

#[tokio::test(flavor = "multi_thread")]
async fn each_function_responds() {
    let (table, aws) = (TestTable::create(MESSAGES).await, AwsServer::start());
    let message = InboxMessage {
        source: Source::new("lamp").unwrap(),
        id: MessageId::new("7").unwrap(),
        body: Body::parse(r#"{"a":1.50}"#).unwrap(),
        received_at: Timestamp::default(),
        expires_at: None,
    };
    let inbox = DynamoDbInbox::new(table.client.clone(), &table.name);
    inbox.store(&message).await.unwrap();
    let environment: Environment = vec![
        ("TABLE", table.name.clone()),
        ("AWS_ENDPOINT_URL", table.endpoint.url()),
        ("IOT_ENDPOINT", aws.url()),
    ];
    for (binary, topic, expected) in [
        (
            QUERY,
            "request/query/lamp",
            r#"{"newestMessageId":"7","oldestMessageId":"7","uuid":"lamp"}"#,
        ),
        (
            GET,
            "request/get/lamp/7",
            r#"{"body":{"a":1.50},"messageId":"7","uuid":"lamp"}"#,
        ),
        (
            NEXT,
            "request/next/lamp/0",
            r#"{"nextMessageId":"7","specifiedMessageId":"0","uuid":"lamp"}"#,
        ),
        (
            NEXT,
            "request/prev/lamp/9",
            r#"{"previousMessageId":"7","specifiedMessageId":"9","uuid":"lamp"}"#,
        ),
        (
            QUERY,
            "request/list/lamp",
            r#"{"messageIds":["7"],"uuid":"lamp"}"#,
        ),
        (QUERY, "request/devices", r#"{"devices":[]}"#),
        (
            DELETE,
            "request/delete/lamp/7",
            r#"{"messageId":"7","uuid":"lamp"}"#,
        ),
    ] {
        let response = response(binary, &environment, &aws, topic, r#"{"token":"t"}"#);
        assert_eq!(response, expected, "{topic}");
    }
    let environment = vec![
        ("OUTBOUND_QUEUE_URL", aws.queue_url("outbound")),
        ("AWS_ENDPOINT_URL", aws.url()),
    ];
    let payload = r#"{"token":"t","message":1}"#;
    let response = response(SEND, &environment, &aws, "request/send/lamp", payload);
    // The request id of the invocation is the default idempotency key.
    assert_eq!(response, r#"{"idempotencyKey":"1","uuid":"lamp"}"#);
    assert_eq!(aws.sent().len(), 1);
}

#[test]
fn an_event_without_a_request_fails_the_invocation() {
    let environment = [
        ("TABLE", "messages".to_owned()),
        ("AWS_ENDPOINT_URL", unreachable_url()),
    ];
    let function = Lambda::start(GET, &environment);
    let error = function.invoke(r#"{"Records":[]}"#).unwrap_err();
    assert!(error.contains("EventError"), "{error}");
    // The process continues.
    assert!(function.invoke("{}").is_err());
}

#[test]
fn a_missing_variable_is_rejected() {
    for binary in [GET, SEND] {
        assert_rejects(binary, &Vec::new(), &[("TABLE", None)]);
    }
    let environment = vec![("TABLE", "messages".to_owned())];
    assert_rejects(GET, &environment, &[("TOKENS", Some("secret"))]);
}
