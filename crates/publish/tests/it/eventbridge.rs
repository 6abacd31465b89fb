//! EventBridge: requests and the meaning of responses.

use antumbra_publish::{EventBridgeChannel, eventbridge};
use antumbra_service::notifications::{Channel, Message};
use serde_json::{Value, json};

use crate::contract::{Behaviour, rejection};
use crate::message::{letters, message, messages, reason, sent};
use crate::scripted::config_of;
use antumbra_testkit::http::{Endpoint, Request, Response};

pub(crate) fn bodies(request: &Request) -> Vec<String> {
    let request = request.json();
    let entries = request["Entries"].as_array().unwrap();
    let body = |entry: &Value| entry["Detail"].as_str().unwrap().to_owned();
    entries.iter().map(body).collect()
}

pub(crate) fn respond(behaviour: Behaviour, request: &Request) -> Response {
    match behaviour {
        Behaviour::Accepts => entries(request, |_| None),
        Behaviour::Throttles => rejection(400, "ThrottlingException"),
        Behaviour::Denies => rejection(400, "AccessDeniedException"),
        Behaviour::HangsUp => Response::HangUp,
    }
}

fn entries(request: &Request, failure: impl Fn(usize) -> Option<&'static str>) -> Response {
    let entry = |n| match failure(n) {
        None => json!({ "EventId": "e" }),
        Some(code) => json!({ "ErrorCode": code, "ErrorMessage": "because" }),
    };
    let entries: Vec<_> = (0..bodies(request).len()).map(entry).collect();
    Response::ok(json!({ "FailedEntryCount": 0, "Entries": entries }))
}

fn accepting() -> Endpoint {
    Endpoint::start(|request| respond(Behaviour::Accepts, request))
}

fn channel(endpoint: &Endpoint, bus: &str) -> EventBridgeChannel {
    EventBridgeChannel::new(&aws_sdk_eventbridge::Client::new(&config_of(endpoint)), bus)
}

#[tokio::test]
async fn a_bus_gets_source_detail_type_and_detail() {
    let endpoint = accepting();
    assert_eq!(
        sent(&channel(&endpoint, "alerts"), &[message(7)]).await,
        "."
    );
    let requests = endpoint.requests();
    assert_eq!(requests[0].operation(), "PutEvents");
    let entry = json!({
        "Source": "antumbra", "DetailType": "Shadow Changed", "Detail": "{\"n\":7}",
        "EventBusName": "alerts",
    });
    assert_eq!(requests[0].json(), json!({ "Entries": [entry] }));
}

#[tokio::test]
async fn each_entry_has_its_own_result() {
    let endpoint = Endpoint::start(|request| {
        entries(request, |n| match n {
            0 => Some("InternalFailure"),
            1 => Some("ThrottlingException"),
            3 => Some("MalformedDetail"),
            4 => Some("NotAuthorizedForSourceException"),
            _ => None,
        })
    });
    // A rejected message must not shift the results of the others.
    let mut messages = messages(7);
    messages[2].detail_type = None;
    let results = channel(&endpoint, "alerts").send(&messages).await;
    assert_eq!(letters(&results), "rrp.pp.");
    assert_eq!(
        reason(&results[4]),
        "EventBridge alerts: MalformedDetail: because"
    );
}

#[tokio::test]
async fn entries_without_a_result_are_retryable() {
    let endpoint =
        Endpoint::start(|_| Response::ok(json!({ "Entries": [{ "EventId": "e" }, {}] })));
    let results = channel(&endpoint, "alerts").send(&messages(3)).await;
    assert_eq!(letters(&results), ".rr");
}

#[tokio::test]
async fn rejected_calls_are_retryable_or_permanent() {
    for (status, code, expected) in [
        (400, "ResourceNotFoundException", "pp"),
        (413, "", "pp"),
        (400, "ValidationException", "pp"),
        (500, "InternalException", "rr"),
    ] {
        let endpoint = Endpoint::start(move |_| rejection(status, code));
        let results = channel(&endpoint, "alerts").send(&messages(2)).await;
        assert_eq!(letters(&results), expected, "{code}: {results:?}");
    }
}

#[tokio::test]
async fn the_limits_leave_room_for_the_envelope() {
    let endpoint = accepting();
    let arn = "arn:aws:events:eu-west-1:123456789012:event-bus/alerts";
    let channel = channel(&endpoint, arn).with_bytes(eventbridge::SMALL_BYTES);
    let limits = channel.limits();
    // Ten messages that fill a batch, each with the longest detail type.
    let body = json!("x".repeat(limits.batch_bytes / 10 - 30)).to_string();
    let largest = Message {
        body,
        attributes: Vec::new(),
        detail_type: Some("\u{10FFFF}".repeat(128)),
        ..message(0)
    };
    assert_eq!(sent(&channel, &vec![largest; 10]).await, "..........");
    let request = &endpoint.requests()[0];
    let size = |entry: &Value| {
        let text = |name| entry[name].as_str().map_or(0, str::len);
        text("Source") + text("DetailType") + text("Detail")
    };
    let sent_request = request.json();
    let entries = sent_request["Entries"].as_array().unwrap().iter();
    assert!(entries.map(size).sum::<usize>() < 256 * 1024);
    let signed = request.header("authorization");
    assert!(signed.contains("/eu-west-1/events/"), "{signed}");
}
