//! Pages: of ids, of messages, of devices; and responses that would be too large.

use antumbra_service::inbox::{Source, SourceTracker as _};
use antumbra_shadow::Timestamp;
use serde_json::{Value, json};

use crate::support::Bench;

/// Requests all pages and returns the elements of one member, and the number of pages.
async fn all(bench: &Bench, topic: &str, payload: Value, name: &str) -> (Vec<Value>, usize) {
    let (mut found, mut pages, mut payload) = (Vec::new(), 0, payload);
    loop {
        let page = bench.request(topic, &payload).await;
        pages += 1;
        assert!(pages < 200, "it does not end");
        found.extend(page[name].as_array().unwrap().iter().cloned());
        match page.get("cursor") {
            Some(cursor) => payload["cursor"] = cursor.clone(),
            None => return (found, pages),
        }
    }
}

#[tokio::test]
async fn ids_are_paged_in_both_orders() {
    let bench = Bench::fresh().await;
    for n in 10..20 {
        bench.store("lamp", &n.to_string(), r#"{"a":1}"#).await;
    }
    bench.request("request/delete/lamp/14", &json!({})).await;
    let topic = "request/list/lamp";
    let expected = ["10", "11", "12", "13", "15", "16", "17", "18", "19"];
    let whole = bench.request(topic, &json!({})).await;
    assert_eq!(whole, json!({"messageIds": expected, "uuid": "lamp"}));
    let (found, pages) = all(&bench, topic, json!({"limit": 4}), "messageIds").await;
    assert_eq!((found, pages), (expected.map(Value::from).to_vec(), 3));
    let back = json!({"limit": 2, "newestFirst": true, "from": "12", "to": "17x"});
    let (found, _) = all(&bench, topic, back, "messageIds").await;
    assert_eq!(found, ["17", "16", "15", "13", "12"].map(Value::from));
    let nobody = bench.request("request/list/nobody", &json!({})).await;
    assert_eq!(nobody, json!({"messageIds": [], "uuid": "nobody"}));
    // A cursor is valid only for its own listing.
    let page = bench.request(topic, &json!({"limit": 2})).await;
    let stolen = json!({"cursor": page["cursor"]});
    let refused = bench.request("request/list/other", &stolen).await;
    assert_eq!(refused["code"], "BadRequest");
}

#[tokio::test]
async fn neighbours_are_found_from_anywhere() {
    let bench = Bench::fresh().await;
    for n in ["10", "20", "30"] {
        bench.store("lamp", n, r#"{"a":1}"#).await;
    }
    for (topic, expected) in [
        (
            "request/next/lamp/0",
            json!({"nextMessageId": "10", "specifiedMessageId": "0", "uuid": "lamp"}),
        ),
        (
            "request/next/lamp/10",
            json!({"nextMessageId": "20", "specifiedMessageId": "10", "uuid": "lamp"}),
        ),
        (
            "request/prev/lamp/25",
            json!({"previousMessageId": "20", "specifiedMessageId": "25", "uuid": "lamp"}),
        ),
        (
            "request/prev/lamp/10",
            json!({"error": "No older messages available", "specifiedMessageId": "10", "uuid": "lamp"}),
        ),
        (
            "request/query/lamp",
            json!({"newestMessageId": "30", "oldestMessageId": "10", "uuid": "lamp"}),
        ),
    ] {
        assert_eq!(bench.request(topic, &json!({})).await, expected, "{topic}");
    }
}

#[tokio::test]
async fn pages_contain_the_messages_that_fit_into_a_response() {
    let bench = Bench::fresh().await;
    // Three fit in a response; the largest one only fits in a response of its own.
    let body = |n: usize| format!(r#"{{"x":"{}"}}"#, "x".repeat(n));
    for n in 0..8 {
        bench.store("lamp", &n.to_string(), &body(40_000)).await;
    }
    let largest = 128 * 1024 - r#"{"body":{"x":""},"messageId":"8","uuid":"lamp"}"#.len();
    bench.store("lamp", "8", &body(largest)).await;
    bench.store("lamp", "9", &body(1)).await;
    let payload = json!({"bodies": true});
    let (found, pages) = all(&bench, "request/list/lamp", payload, "messages").await;
    let ids: Vec<&str> = found
        .iter()
        .map(|m| m["messageId"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]);
    assert_eq!(pages, 3);
    for message in &found {
        let whole = message["body"]["x"].is_string();
        assert_eq!(
            whole,
            message["messageId"] != "8",
            "{}",
            message["messageId"]
        );
    }
    assert_eq!(found[8]["code"], "TooLarge");
    // It can be requested alone.
    let alone = bench.request("request/get/lamp/8", &json!({})).await;
    assert_eq!(alone["body"]["x"].as_str().unwrap().len(), largest);
}

#[tokio::test]
async fn a_page_of_long_ids_ends_early() {
    let bench = Bench::fresh().await;
    for n in 0..600 {
        let id = format!("{n:04}{}", "\"".repeat(150));
        bench.store("lamp", &id, r#"{"a":1}"#).await;
    }
    let payload = json!({"limit": 1000});
    let (found, pages) = all(&bench, "request/list/lamp", payload, "messageIds").await;
    assert_eq!((found.len(), pages), (600, 2));
}

#[tokio::test]
async fn a_response_that_is_too_large_names_its_size() {
    let bench = Bench::fresh().await;
    // Message ingest rejects such a message, but a table can contain one.
    let body = format!(r#"{{"x":"{}"}}"#, "x".repeat(130 * 1024));
    bench.store("lamp", "1", &body).await;
    let response = bench.request("request/get/lamp/1", &json!({})).await;
    let bytes = body.len() + r#"{"body":,"messageId":"1","uuid":"lamp"}"#.len();
    let expected = json!({
        "error": format!("The response has {bytes} bytes, the limit is 131072"),
        "code": "TooLarge", "bytes": bytes, "messageId": "1", "uuid": "lamp",
    });
    assert_eq!(response, expected);
}

#[tokio::test]
async fn devices_have_the_hour_of_their_last_message() {
    let bench = Bench::fresh().await;
    for n in 0..5 {
        let source = Source::new(format!("lamp-{n}")).unwrap();
        let at = Timestamp::parse(&format!("2026-01-31T1{n}:47:11Z")).unwrap();
        bench.inbox.touch(&source, at).await.unwrap();
    }
    let (found, pages) = all(&bench, "request/devices", json!({"limit": 2}), "devices").await;
    assert_eq!((found.len(), pages), (5, 3));
    // The hours of this source begin at 7 seconds past minute 45.
    let expected = json!({"lastContact": "2026-01-31T13:45:07Z", "uuid": "lamp-3"});
    assert_eq!(found[3], expected);
}
