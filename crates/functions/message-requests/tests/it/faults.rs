//! Failures of the store and of the broker, and events of other sources.

use antumbra_testkit::SendReply;
use antumbra_testkit::dynamodb::Reply;
use antumbra_wire::rules::Operation;
use serde_json::json;

use crate::support::{Bench, event, event5};

fn throttled() -> Reply {
    Reply::fail(400, "ProvisionedThroughputExceededException")
}

#[tokio::test]
async fn an_unavailable_store_gets_one_response() {
    let bench = Bench::fresh().await;
    bench.endpoint.script(|_| throttled());
    let response = bench.request("request/get/lamp/1", &json!({})).await;
    let expected = json!({
        "error": "Not available at the moment, try again",
        "code": "Unavailable", "messageId": "1", "uuid": "lamp",
    });
    assert_eq!(response, expected);
    for topic in [
        "request/query/lamp",
        "request/next/lamp/1",
        "request/delete/lamp/1",
        "request/list/lamp",
        "request/devices",
    ] {
        let response = bench.request(topic, &json!({})).await;
        assert_eq!(response["code"], "Unavailable", "{topic}: {response}");
    }
}

#[tokio::test]
async fn throttled_reads_are_retried() {
    let bench = Bench::fresh().await;
    bench.store("lamp", "1", r#"{"a":1}"#).await;
    bench.endpoint.script_next("GetItem", [throttled()]);
    let response = bench.request("request/get/lamp/1", &json!({})).await;
    assert_eq!(response["body"], json!({"a": 1}));
}

#[tokio::test]
async fn internal_errors_show_no_details() {
    let bench = Bench::fresh().await;
    bench
        .endpoint
        .script(|_| Reply::fail(400, "AccessDeniedException"));
    let response = bench.request("request/query/lamp", &json!({})).await;
    let text = response.to_string();
    assert!(response["code"] != "BadRequest", "{response}");
    assert!(
        !text.contains("AccessDenied") && !text.contains("table"),
        "{text}"
    );
}

#[tokio::test]
async fn a_throttled_response_is_published_again() {
    let bench = Bench::fresh().await;
    bench
        .responses
        .reply_next([SendReply::Throttle, SendReply::Throttle]);
    let event = event("request/query/lamp", br#"{"token":"t"}"#);
    bench.handle(Operation::Query, &event).await.unwrap();
    assert_eq!(bench.take_responses().len(), 1);
    // Served once, however often the response was published.
    assert_eq!(bench.endpoint.take_operations(), ["Query", "Query"]);
}

#[tokio::test]
async fn a_response_that_cannot_be_published_fails_the_invocation() {
    let bench = Bench::fresh().await;
    bench.responses.reply_next([SendReply::deny("not allowed")]);
    let event = event("request/query/lamp", br#"{"token":"t"}"#);
    let failed = bench.handle(Operation::Query, &event).await.unwrap_err();
    assert_eq!(failed.kind, "ResponseNotPublished");
    assert!(bench.take_responses().is_empty());
}

#[tokio::test]
async fn a_rejected_response_topic_gets_an_error_on_the_fallback_topic() {
    let bench = Bench::fresh().await;
    let expected = r#"{"error":"The request was served, but nothing can be published to its response topic","code":"BadRequest","uuid":"lamp"}"#;
    for (payload, to) in [
        (br#"{"token":"t"}"#.as_slice(), "response/query/t"),
        (b"", "response/query/rejected"),
    ] {
        bench.responses.reply_next([SendReply::deny("not allowed")]);
        let event = event5("request/query/lamp", payload, "response/mine");
        let summary = bench.handle(Operation::Query, &event).await.unwrap();
        assert_eq!(summary.code, Some("BadRequest"));
        assert_eq!(
            bench.take_responses(),
            [(to.to_owned(), expected.to_owned())]
        );
    }
}

#[tokio::test]
async fn correlation_data_is_returned() {
    let bench = Bench::fresh().await;
    let event = event5("request/query/lamp", b"", "response/query/mine");
    bench.handle(Operation::Query, &event).await.unwrap();
    let responses = bench.responses.take_accepted();
    assert_eq!(responses.len(), 1);
    assert_eq!(responses[0].topic.as_deref(), Some("response/query/mine"));
    assert_eq!(responses[0].correlation_data.as_deref(), Some("AQID"));
    assert_eq!(responses[0].qos, 1);
}

#[tokio::test]
async fn events_of_other_sources_fail_the_invocation() {
    let bench = Bench::fresh().await;
    for event in [
        "",
        "null",
        "{}",
        r#"{"Records":[]}"#,
        r#"{"topic":"t","payload":7}"#,
    ] {
        let failed = bench.handle(Operation::Get, event.as_bytes()).await;
        assert_eq!(failed.unwrap_err().kind, "EventError", "{event}");
    }
    assert!(bench.take_responses().is_empty());
}
