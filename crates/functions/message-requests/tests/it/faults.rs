//! A store that fails, a broker that fails, events that are none.

use antumbra_testkit::SendReply;
use antumbra_testkit::dynamodb::Reply;
use antumbra_wire::rules::Operation;
use serde_json::json;

use crate::support::{Stage, event, event5};

fn throttled() -> Reply {
    Reply::fail(400, "ProvisionedThroughputExceededException")
}

#[tokio::test]
async fn a_store_that_does_not_answer_is_one_answer() {
    let stage = Stage::fresh().await;
    stage.endpoint.script(|_| throttled());
    let answer = stage.ask("request/get/lamp/1", &json!({})).await;
    let expected = json!({
        "error": "Not available at the moment, try again",
        "code": "Unavailable", "messageId": "1", "uuid": "lamp",
    });
    assert_eq!(answer, expected);
    for topic in [
        "request/query/lamp",
        "request/next/lamp/1",
        "request/delete/lamp/1",
        "request/list/lamp",
        "request/devices",
    ] {
        let answer = stage.ask(topic, &json!({})).await;
        assert_eq!(answer["code"], "Unavailable", "{topic}: {answer}");
    }
}

#[tokio::test]
async fn a_moment_of_throttling_is_not_noticed() {
    let stage = Stage::fresh().await;
    stage.store("lamp", "1", r#"{"a":1}"#).await;
    stage.endpoint.script_next("GetItem", [throttled()]);
    let answer = stage.ask("request/get/lamp/1", &json!({})).await;
    assert_eq!(answer["body"], json!({"a": 1}));
}

#[tokio::test]
async fn what_we_cannot_do_is_not_told_in_detail() {
    let stage = Stage::fresh().await;
    stage
        .endpoint
        .script(|_| Reply::fail(400, "AccessDeniedException"));
    let answer = stage.ask("request/query/lamp", &json!({})).await;
    let text = answer.to_string();
    assert!(answer["code"] != "BadRequest", "{answer}");
    assert!(
        !text.contains("AccessDenied") && !text.contains("table"),
        "{text}"
    );
}

#[tokio::test]
async fn an_answer_is_published_again_until_it_is_there_once() {
    let stage = Stage::fresh().await;
    stage
        .responses
        .reply_next([SendReply::Throttle, SendReply::Throttle]);
    let event = event("request/query/lamp", br#"{"token":"t"}"#);
    stage.handle(Operation::Query, &event).await.unwrap();
    assert_eq!(stage.take_responses().len(), 1);
    // Served once, however often its answer was tried.
    assert_eq!(stage.endpoint.take_operations(), ["Query", "Query"]);
}

#[tokio::test]
async fn an_answer_that_cannot_be_published_fails_the_call() {
    let stage = Stage::fresh().await;
    stage.responses.reply_next([SendReply::deny("not allowed")]);
    let event = event("request/query/lamp", br#"{"token":"t"}"#);
    let failed = stage.handle(Operation::Query, &event).await.unwrap_err();
    assert_eq!(failed.kind, "ResponseNotPublished");
    assert!(stage.take_responses().is_empty());
}

#[tokio::test]
async fn a_response_topic_that_is_refused_is_told_of_elsewhere() {
    let stage = Stage::fresh().await;
    let told = r#"{"error":"The request was served, but nothing can be published to its response topic","code":"BadRequest","uuid":"lamp"}"#;
    for (payload, to) in [
        (br#"{"token":"t"}"#.as_slice(), "response/query/t"),
        (b"", "response/query/rejected"),
    ] {
        stage.responses.reply_next([SendReply::deny("not allowed")]);
        let event = event5("request/query/lamp", payload, "response/mine");
        let handled = stage.handle(Operation::Query, &event).await.unwrap();
        assert_eq!(handled.code, Some("BadRequest"));
        assert_eq!(stage.take_responses(), [(to.to_owned(), told.to_owned())]);
    }
}

#[tokio::test]
async fn correlation_data_comes_back() {
    let stage = Stage::fresh().await;
    let event = event5("request/query/lamp", b"", "response/query/mine");
    stage.handle(Operation::Query, &event).await.unwrap();
    let answers = stage.responses.take_accepted();
    assert_eq!(answers.len(), 1);
    assert_eq!(answers[0].topic.as_deref(), Some("response/query/mine"));
    assert_eq!(answers[0].correlation_data.as_deref(), Some("AQID"));
    assert_eq!(answers[0].qos, 1);
}

#[tokio::test]
async fn an_event_that_no_rule_made_fails_the_call() {
    let stage = Stage::fresh().await;
    for event in [
        "",
        "null",
        "{}",
        r#"{"Records":[]}"#,
        r#"{"topic":"t","payload":7}"#,
    ] {
        let failed = stage.handle(Operation::Get, event.as_bytes()).await;
        assert_eq!(failed.unwrap_err().kind, "EventError", "{event}");
    }
    assert!(stage.take_responses().is_empty());
}
