//! Every function as Lambda runs it: a process that takes a rule's event and answers over AWS IoT.
#![allow(clippy::unwrap_used)]

use antumbra_dynamodb::{DynamoDbInbox, MESSAGES};
use antumbra_local::clients::sdk_config;
use antumbra_local::mqtt::{self, Subscription, TopicFilter};
use antumbra_local::queues;
use antumbra_service::inbox::{Body, InboxMessage, MessageId, MessageWriter as _, Source};
use antumbra_shadow::Timestamp;
use antumbra_testkit::dynamodb::TestTable;
use antumbra_testkit::lambda::{Lambda, assert_rejects, unreachable_url};

/// `{"token":"t"}`, and the same with a message.
const TOKEN: &str = "eyJ0b2tlbiI6InQifQ==";
const TOKEN_AND_MESSAGE: &str = "eyJ0b2tlbiI6InQiLCJtZXNzYWdlIjoxfQ==";

fn event(topic: &str, payload: &str) -> String {
    format!(r#"{{"payload":"{payload}","topic":"{topic}","clientId":"n/a","timestamp":1}}"#)
}

/// Runs a function on one event, and returns the payload that is published.
async fn answer(
    binary: &'static str,
    environment: Vec<(&'static str, String)>,
    event: String,
    answers: &mut Subscription,
) -> String {
    let invoked = tokio::task::spawn_blocking(move || {
        let function = Lambda::start(binary, &environment);
        function.invoke(&event)
    });
    assert_eq!(invoked.await.unwrap().as_deref(), Ok("null"), "{binary}");
    let answer = answers.next().await.unwrap();
    String::from_utf8(answer.payload.to_vec()).unwrap()
}

#[tokio::test]
async fn each_function_answers() {
    let broker = mqtt::start(0).await.unwrap();
    let aws = queues::start_with_mqtt(0, broker.publisher()).await;
    let aws = aws.unwrap();
    let mut answers = broker.subscribe(TopicFilter::new("response/+/t").unwrap());

    let table = TestTable::create(MESSAGES).await;
    let message = InboxMessage {
        source: Source::new("lamp").unwrap(),
        id: MessageId::new("7").unwrap(),
        body: Body::parse(r#"{"a":1.50}"#).unwrap(),
        received_at: Timestamp::default(),
        expires_at: None,
    };
    let inbox = DynamoDbInbox::new(table.client.clone(), &table.name);
    inbox.store(&message).await.unwrap();

    let on_inbox = || {
        vec![
            ("TABLE", table.name.clone()),
            ("AWS_ENDPOINT_URL", table.endpoint.url()),
            ("IOT_ENDPOINT", format!("http://{}", aws.address())),
        ]
    };
    for (binary, topic, expected) in [
        (
            env!("CARGO_BIN_EXE_antumbra-message-query"),
            "request/query/lamp",
            r#"{"newestMessageId":"7","oldestMessageId":"7","uuid":"lamp"}"#,
        ),
        (
            env!("CARGO_BIN_EXE_antumbra-message-get"),
            "request/get/lamp/7",
            r#"{"body":{"a":1.50},"messageId":"7","uuid":"lamp"}"#,
        ),
        (
            env!("CARGO_BIN_EXE_antumbra-message-next"),
            "request/next/lamp/0",
            r#"{"nextMessageId":"7","specifiedMessageId":"0","uuid":"lamp"}"#,
        ),
        (
            env!("CARGO_BIN_EXE_antumbra-message-next"),
            "request/prev/lamp/9",
            r#"{"previousMessageId":"7","specifiedMessageId":"9","uuid":"lamp"}"#,
        ),
        (
            env!("CARGO_BIN_EXE_antumbra-message-query"),
            "request/list/lamp",
            r#"{"messageIds":["7"],"uuid":"lamp"}"#,
        ),
        (
            env!("CARGO_BIN_EXE_antumbra-message-query"),
            "request/devices",
            r#"{"devices":[]}"#,
        ),
        (
            env!("CARGO_BIN_EXE_antumbra-message-delete"),
            "request/delete/lamp/7",
            r#"{"messageId":"7","uuid":"lamp"}"#,
        ),
    ] {
        let said = answer(binary, on_inbox(), event(topic, TOKEN), &mut answers).await;
        assert_eq!(said, expected, "{topic}");
    }

    let sqs = aws_sdk_sqs::Client::new(&sdk_config(aws.address()));
    let queue = sqs.create_queue().queue_name("outbound").send().await;
    let on_queue = vec![
        ("OUTBOUND_QUEUE_URL", queue.unwrap().queue_url.unwrap()),
        ("AWS_ENDPOINT_URL", format!("http://{}", aws.address())),
    ];
    let binary = env!("CARGO_BIN_EXE_antumbra-message-send");
    let event = event("request/send/lamp", TOKEN_AND_MESSAGE);
    let said = answer(binary, on_queue, event, &mut answers).await;
    // The runtime's id of the call stands for the key that was not given.
    assert_eq!(said, r#"{"idempotencyKey":"1","uuid":"lamp"}"#);
}

#[test]
fn what_is_no_request_fails_the_call() {
    let environment = [
        ("TABLE", "messages".to_owned()),
        ("AWS_ENDPOINT_URL", unreachable_url()),
    ];
    let function = Lambda::start(env!("CARGO_BIN_EXE_antumbra-message-get"), &environment);
    let failed = function.invoke(r#"{"Records":[]}"#).unwrap_err();
    assert!(failed.contains("EventError"), "{failed}");
    // The process lives on.
    assert!(function.invoke("{}").is_err());
}

#[test]
fn a_missing_setting_is_rejected() {
    for binary in [
        env!("CARGO_BIN_EXE_antumbra-message-get"),
        env!("CARGO_BIN_EXE_antumbra-message-send"),
    ] {
        assert_rejects(binary, &Vec::new(), &[("TABLE", None)]);
    }
}
