//! Requests that make no sense: one clear answer each, and never a failed invocation.

use antumbra_wire::rules::Operation;

use crate::support::{Stage, event, event5};

/// What a request gets: topic and payload.
async fn answer(operation: Operation, event: &[u8]) -> (String, String) {
    let stage = Stage::fresh().await;
    let handled = stage.handle(operation, event).await.unwrap();
    let mut answers = stage.take_responses();
    assert_eq!(answers.len(), 1, "{answers:?}");
    let (topic, payload) = answers.remove(0);
    let rejected = topic == format!("response/{}/rejected", operation.word());
    assert_eq!(handled.rejected, rejected, "{topic}");
    assert!(handled.code.is_some(), "{payload}");
    assert!(stage.endpoint.take_calls().is_empty());
    (topic, payload)
}

#[tokio::test]
async fn each_gets_one_clear_answer() {
    let shape =
        r#"{"error":"The topic must be request/get/<uuid>/<messageId>","code":"BadRequest"}"#;
    let t = br#"{"token":"t"}"#.as_slice();
    let long = format!(r#"{{"token":"{}"}}"#, "x".repeat(129));
    let token = |what: &str| format!(r#"{{"error":"{what}","code":"BadRequest"}}"#);
    let cases: Vec<(&str, &[u8], &str, String)> = vec![
        // Topics.
        ("request/get/a", t, "t", shape.to_owned()),
        ("request/get/a/b/c", t, "t", shape.to_owned()),
        ("request/get/VICTIM/b/a/b", t, "t", shape.to_owned()),
        ("request/get//b", t, "t", shape.to_owned()),
        ("request/get/a/", t, "t", shape.to_owned()),
        ("request/get/", t, "t", shape.to_owned()),
        // Payloads.
        (
            "request/get/a/b",
            b"{}",
            "rejected",
            token("There is no token"),
        ),
        (
            "request/get/a/b",
            b"",
            "rejected",
            token("The payload is not JSON"),
        ),
        (
            "request/get/a/b",
            b"token",
            "rejected",
            token("The payload is not JSON"),
        ),
        (
            "request/get/a/b",
            b"\xff\x00",
            "rejected",
            token("The payload is not JSON"),
        ),
        (
            "request/get/a/b",
            b"[\"t\"]",
            "rejected",
            token("The payload is not a JSON object"),
        ),
        (
            "request/get/a/b",
            br##"{"token":"#"}"##,
            "rejected",
            token("The token holds '#', which is not allowed"),
        ),
        (
            "request/get/a/b",
            br#"{"token":"a/b"}"#,
            "rejected",
            token("The token holds '/', which is not allowed"),
        ),
        (
            "request/get/a/b",
            br#"{"token":"+"}"#,
            "rejected",
            token("The token holds '+', which is not allowed"),
        ),
        (
            "request/get/a/b",
            br#"{"token":"$aws"}"#,
            "rejected",
            token("The token holds '$', which is not allowed"),
        ),
        (
            "request/get/a/b",
            br#"{"token":["t"]}"#,
            "rejected",
            token("token must be a string"),
        ),
        (
            "request/get/a/b",
            long.as_bytes(),
            "rejected",
            token("The token has 129 characters, the limit is 128"),
        ),
        // Both: the topic is of no interest to whoever cannot be answered.
        (
            "request/get/a",
            b"{}",
            "rejected",
            token("There is no token"),
        ),
    ];
    for (topic, payload, to, expected) in cases {
        let got = answer(Operation::Get, &event(topic, payload)).await;
        let expected = (format!("response/get/{to}"), expected);
        assert_eq!(
            got,
            expected,
            "{topic} {}",
            String::from_utf8_lossy(payload)
        );
    }
}

#[tokio::test]
async fn names_that_are_none_are_told_with_what_was_named() {
    let long = format!("request/next/{}/7", "u".repeat(129));
    let (_, payload) = answer(Operation::Next, &event(&long, br#"{"token":"t"}"#)).await;
    let uuid = "u".repeat(129);
    assert_eq!(
        payload,
        format!(
            r#"{{"error":"the uuid has 129 bytes, the limit is 128","code":"BadRequest","specifiedMessageId":"7","uuid":"{uuid}"}}"#
        )
    );
    let hostile = event("request/get/$aws/b", br#"{"token":"t"}"#);
    let (_, payload) = answer(Operation::Get, &hostile).await;
    assert_eq!(
        payload,
        r#"{"error":"the uuid starts with $, which is reserved","code":"BadRequest","messageId":"b","uuid":"$aws"}"#
    );
}

#[tokio::test]
async fn two_hundred_kilobytes_get_one_answer() {
    let payload = format!(r#"{{"token":"t","x":"{}"}}"#, "x".repeat(200 * 1024));
    let got = answer(
        Operation::Query,
        &event("request/query/a", payload.as_bytes()),
    )
    .await;
    let told = r#"{"error":"The payload has 204820 bytes, the limit is 131072","code":"TooLarge","bytes":204820}"#;
    assert_eq!(got, ("response/query/t".to_owned(), told.to_owned()));
    let nonsense = "x".repeat(200 * 1024);
    let got = answer(
        Operation::Query,
        &event("request/query/a", nonsense.as_bytes()),
    )
    .await;
    assert_eq!(got.0, "response/query/rejected");
}

#[tokio::test]
async fn a_response_topic_leads_nowhere_else() {
    for topic in [
        "notification/lamp",
        "request/delete/lamp/1",
        "$aws/things/lamp/shadow/update",
        "response",
        "response/",
        "response/+",
        "response/get/#",
        "response//t",
        "/response/t",
        "Response/t",
        "response/a\u{0}",
    ] {
        let event = event5("request/query/a", b"{}", topic);
        let (to, payload) = answer(Operation::Query, &event).await;
        assert_eq!(to, "response/query/rejected", "{topic}");
        assert!(payload.contains("The response topic"), "{payload}");
    }
}
