//! Invalid requests: one error response each, and never a failed invocation.

use antumbra_wire::rules::Operation;

use crate::support::{Bench, event, event5};

/// Returns topic and payload of the response.
async fn response(operation: Operation, event: &[u8]) -> (String, String) {
    let bench = Bench::fresh().await;
    let summary = bench.handle(operation, event).await.unwrap();
    let mut responses = bench.take_responses();
    assert_eq!(responses.len(), 1, "{responses:?}");
    let (topic, payload) = responses.remove(0);
    let rejected = topic == format!("response/{}/rejected", operation.word());
    assert_eq!(summary.rejected, rejected, "{topic}");
    assert!(summary.code.is_some(), "{payload}");
    assert!(bench.endpoint.take_calls().is_empty());
    (topic, payload)
}

#[tokio::test]
async fn each_invalid_request_gets_one_error() {
    let shape = "The topic must be request/get/<uuid>/<messageId>";
    let t = br#"{"token":"t"}"#.as_slice();
    // The crate wire tests all kinds of invalid topics, payloads and tokens.
    let cases: [(&str, &[u8], &str, &str); 7] = [
        ("request/get/a", t, "t", shape),
        ("request/get/VICTIM/b/a/b", t, "t", shape),
        ("request/get/a/b", b"{}", "rejected", "There is no token"),
        (
            "request/get/a/b",
            b"\xff\x00",
            "rejected",
            "The payload is not JSON",
        ),
        (
            "request/get/a/b",
            b"[\"t\"]",
            "rejected",
            "The payload is not a JSON object",
        ),
        (
            "request/get/a/b",
            br#"{"token":["t"]}"#,
            "rejected",
            "token must be a string",
        ),
        // Both are invalid: the missing token is reported.
        ("request/get/a", b"{}", "rejected", "There is no token"),
    ];
    for (topic, payload, to, error) in cases {
        let expected = format!(r#"{{"error":"{error}","code":"BadRequest"}}"#);
        let got = response(Operation::Get, &event(topic, payload)).await;
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
async fn errors_of_names_repeat_the_names() {
    let long = format!("request/next/{}/7", "u".repeat(129));
    let (_, payload) = response(Operation::Next, &event(&long, br#"{"token":"t"}"#)).await;
    let uuid = "u".repeat(129);
    assert_eq!(
        payload,
        format!(
            r#"{{"error":"the uuid has 129 bytes, the limit is 128","code":"BadRequest","specifiedMessageId":"7","uuid":"{uuid}"}}"#
        )
    );
    let hostile = event("request/get/$aws/b", br#"{"token":"t"}"#);
    let (_, payload) = response(Operation::Get, &hostile).await;
    assert_eq!(
        payload,
        r#"{"error":"the uuid starts with $, which is reserved","code":"BadRequest","messageId":"b","uuid":"$aws"}"#
    );
}

#[tokio::test]
async fn responses_to_private_tokens_reach_only_their_client() {
    // The client of these events is `c`.
    for event in [
        event("request/list/lamp", br#"{"token":"victim.1"}"#),
        event5("request/list/lamp", b"", "response/list/victim.1"),
    ] {
        let (topic, payload) = response(Operation::List, &event).await;
        assert_eq!(topic, "response/list/rejected");
        assert!(
            payload.contains("belongs to the client victim"),
            "{payload}"
        );
    }
    let bench = Bench::fresh().await;
    let own = event("request/list/lamp", br#"{"token":"c.1"}"#);
    let summary = bench.handle(Operation::List, &own).await.unwrap();
    assert_eq!((summary.code, summary.rejected), (None, false));
    assert_eq!(bench.take_responses()[0].0, "response/list/c.1");
}

#[tokio::test]
async fn a_payload_of_200_kb_gets_one_error() {
    let payload = format!(r#"{{"token":"t","x":"{}"}}"#, "x".repeat(200 * 1024));
    let got = response(
        Operation::Query,
        &event("request/query/a", payload.as_bytes()),
    )
    .await;
    let expected = r#"{"error":"The payload has 204820 bytes, the limit is 131072","code":"TooLarge","bytes":204820}"#;
    assert_eq!(got, ("response/query/t".to_owned(), expected.to_owned()));
    let nonsense = "x".repeat(200 * 1024);
    let got = response(
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
        let (to, payload) = response(Operation::Query, &event).await;
        assert_eq!(to, "response/query/rejected", "{topic}");
        assert!(payload.contains("The response topic"), "{payload}");
    }
}
