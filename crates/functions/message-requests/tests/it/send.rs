//! Sending to devices, through a real queue.

use std::sync::Arc;

use antumbra_local::clients::sdk_config;
use antumbra_local::queues::{self, Queues};
use antumbra_message_requests::operations::SendFunction;
use antumbra_publish::SqsChannel;
use antumbra_service::clock::SystemClock;
use antumbra_service::inbox::Outbound;
use antumbra_service::notifications::Channel;
use antumbra_testkit::{RecordingChannel, SendReply};
use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::{MessageSystemAttributeName, QueueAttributeName};
use serde_json::{Value, json};

use crate::support::{Bench, event};

async fn queue(name: &str) -> (Queues, Client, String) {
    let queues = queues::start(0).await.unwrap();
    let client = Client::new(&sdk_config(queues.address()));
    let mut made = client.create_queue().queue_name(name);
    if name.ends_with(".fifo") {
        made = made.attributes(QueueAttributeName::FifoQueue, "true");
    }
    let url = made.send().await.unwrap().queue_url.unwrap();
    (queues, client, url)
}

/// Sends, and returns the payload of the one response.
async fn send(bench: &Bench, outbound: Arc<dyn Channel>, uuid: &str, payload: &str) -> String {
    let event = event(&format!("request/send/{uuid}"), payload.as_bytes());
    let serve = SendFunction(Outbound {
        queue: outbound,
        clock: Arc::new(SystemClock),
    });
    bench.respond(serve, &event).await.unwrap();
    let mut responses = bench.take_responses();
    assert_eq!(responses.len(), 1);
    assert_eq!(responses[0].0, "response/send/t");
    responses.remove(0).1
}

async fn received(client: &Client, url: &str) -> Vec<aws_sdk_sqs::types::Message> {
    let call = client.receive_message().queue_url(url);
    let call = call.message_system_attribute_names(MessageSystemAttributeName::All);
    let call = call.max_number_of_messages(10);
    call.send().await.unwrap().messages.unwrap_or_default()
}

#[tokio::test]
async fn a_message_goes_to_the_queue_as_it_was_written() {
    let bench = Bench::fresh().await;
    let (_queues, client, url) = queue("outbound").await;
    let outbound: Arc<dyn Channel> = Arc::new(SqsChannel::new(&client, &url));
    let payload = r#"{"token":"t","message":{"led": 72.50},"idempotencyKey":"k-1"}"#;
    let response = send(&bench, Arc::clone(&outbound), "lamp", payload).await;
    assert_eq!(response, r#"{"idempotencyKey":"k-1","uuid":"lamp"}"#);
    let messages = received(&client, &url).await;
    assert_eq!(
        messages[0].body(),
        Some(r#"{"idempotencyKey":"k-1","message":{"led": 72.50},"uuid":"lamp"}"#)
    );
    // Without a key the call's own id is one.
    let response = send(&bench, outbound, "lamp", r#"{"token":"t","message":"on"}"#).await;
    assert_eq!(response, r#"{"idempotencyKey":"call-1","uuid":"lamp"}"#);
}

#[tokio::test]
async fn a_fifo_queue_takes_a_key_once_per_device() {
    let bench = Bench::fresh().await;
    let (_queues, client, url) = queue("outbound.fifo").await;
    let outbound: Arc<dyn Channel> = Arc::new(SqsChannel::new(&client, &url));
    let payload = r#"{"token":"t","message":1,"idempotencyKey":"k"}"#;
    for uuid in ["lamp", "lamp", "door"] {
        send(&bench, Arc::clone(&outbound), uuid, payload).await;
    }
    let messages = received(&client, &url).await;
    let mut groups: Vec<&str> = messages
        .iter()
        .map(|m| m.attributes().unwrap()[&MessageSystemAttributeName::MessageGroupId].as_str())
        .collect();
    groups.sort_unstable();
    assert_eq!(groups, ["door", "lamp"]);
}

#[tokio::test]
async fn messages_that_cannot_be_sent_get_an_error() {
    let bench = Bench::fresh().await;
    let outbound = Arc::new(RecordingChannel::with_limits(1, 128 * 1024));
    let to = || Arc::clone(&outbound) as Arc<dyn Channel>;
    for (uuid, payload, expected) in [
        ("lamp", r#"{"token":"t"}"#, "There is no message"),
        (
            "lamp",
            r#"{"token":"t","message":1,"idempotencyKey":""}"#,
            "idempotencyKey must have 1 to 128 ASCII characters, no space",
        ),
        (
            "lamp",
            r#"{"token":"t","message":1,"idempotencyKey":7}"#,
            "idempotencyKey must be a string",
        ),
        (
            "$lamp",
            r#"{"token":"t","message":1}"#,
            "the uuid starts with $, which is reserved",
        ),
    ] {
        let response = send(&bench, to(), uuid, payload).await;
        let response: Value = serde_json::from_str(&response).unwrap();
        let expected = json!({"error": expected, "code": "BadRequest", "uuid": uuid});
        assert_eq!(response, expected);
    }
    assert!(outbound.take_accepted().is_empty());
    outbound.reply_next([SendReply::deny("no such queue at 10.0.0.7")]);
    let response = send(&bench, to(), "lamp", r#"{"token":"t","message":1}"#).await;
    assert_eq!(
        response,
        r#"{"error":"The request could not be served","code":"Internal","uuid":"lamp"}"#
    );
    // Tried again while there is time.
    outbound.reply_next([SendReply::Throttle]);
    send(&bench, to(), "lamp", r#"{"token":"t","message":1}"#).await;
    assert_eq!(outbound.take_accepted().len(), 1);
}
