//! Invalid and hostile requests: the right response, and nothing written.

use std::time::Duration;

use antumbra_memory::MemoryShadows;
use antumbra_service::clock::Clock;
use antumbra_service::shadows::{Layout, ShadowId};
use antumbra_shadow_requests::Config;
use antumbra_testkit::table::cases;
use serde_json::{Value, json};

use crate::support::{configured, event, in_memory, sections};

#[tokio::test]
async fn invalid_requests_are_rejected_and_write_nothing() {
    let table = cases(include_str!("../../testdata/invalid-requests.txt"));
    let table = table.into_iter();
    let mut cases: Vec<(Vec<u8>, u16, String)> = table
        .map(|[payload, code, message]| (payload.into_bytes(), code.parse().unwrap(), message))
        .collect();
    let encoding = "Unsupported documented encoding; supported encoding is UTF-8";
    for (payload, code, message) in [
        (
            &b"\x0c{\"state\":{\"desired\":{\"a\":1}}}"[..],
            400,
            "Invalid JSON",
        ),
        (b"{\"state\":{\"desired\":{\"a\":\"\xff\"}}}", 415, encoding),
    ] {
        cases.push((payload.to_vec(), code, message.to_owned()));
    }
    for layout in [Layout::Separate, Layout::Combined] {
        let (function, store) = in_memory(layout);
        for (payload, code, message) in &cases {
            let (topic, response) = function.request("shadow/lamp/update", payload).await;
            let shown = String::from_utf8_lossy(&payload[..payload.len().min(80)]).into_owned();
            assert_eq!(topic, "shadow/lamp/update/rejected", "{shown}");
            assert_eq!(response["code"], *code, "{shown}: {response}");
            assert_eq!(response["message"], **message, "{shown}");
            let lamp = ShadowId::new("lamp").unwrap();
            assert!(sections(&store, &lamp).await.is_absent(), "{shown}");
        }
    }
}

#[tokio::test]
async fn numbers_and_names_that_cannot_be_kept_are_rejected() {
    let (function, _) = in_memory(Layout::Separate);
    for (document, words) in [
        (r#"{"n":1e400}"#, "Invalid JSON: at byte 5"),
        (r#"{"n":{"":1}}"#, "a name in a document is empty"),
    ] {
        let payload = format!("{{\"state\":{{\"reported\":{document}}}}}");
        let (_, response) = function
            .request("shadow/lamp/update", payload.as_bytes())
            .await;
        assert_eq!(response["code"], 400);
        assert!(
            response["message"].as_str().unwrap().starts_with(words),
            "{response}"
        );
    }
}

#[tokio::test]
async fn the_client_token_is_always_repeated() {
    let (function, _) = in_memory(Layout::Separate);
    let payload = br#"{"state":7,"version":"x","clientToken":"t-1"}"#;
    let (_, response) = function.request("shadow/lamp/update", payload).await;
    assert_eq!(response["clientToken"], "t-1");
    assert_eq!(response["timestamp"], 1_700_000_000);
}

#[tokio::test]
async fn a_topic_that_is_not_a_shadows_gets_no_response() {
    let (function, _) = in_memory(Layout::Separate);
    for topic in [
        "shadow/victim/lamp/get",
        "shadow/lamp/get/accepted",
        "shadow/lamp/update/delta",
        "request/get/lamp",
        "$aws/things/victim/lamp/shadow/get",
    ] {
        assert!(function.refuse(topic).await.kind == "TopicError", "{topic}");
    }
    for topic in [
        "shadow/%41/get",
        "shadow//get",
        "shadow/lamp/name/main/get",
        "shadow/a+b/get",
    ] {
        let (response_topic, response) = function.request(topic, b"").await;
        assert_eq!(response_topic, format!("{topic}/rejected"));
        assert_eq!(response["code"], 400, "{topic}");
    }
}

#[tokio::test]
async fn another_things_shadow_is_forbidden_if_configured() {
    let store = MemoryShadows::new(Layout::Separate);
    let config = Config {
        own_shadows_only: true,
        ..Config::default()
    };
    let function = configured(store.clone(), config);
    let requests = &function.requests;
    let deadline = function.clock.now().after(Duration::from_secs(10));
    let payload = br#"{"state":{"desired":{"door":"open"}},"clientToken":"t"}"#;
    for client in ["lamp", "n/a", "Victim", "victim "] {
        let event = event("shadow/victim/update", client, payload);
        let summary = requests.respond(&event, deadline).await.unwrap();
        assert_eq!(summary.code, Some(403));
        let [response] = <[_; 1]>::try_from(function.responses.take_accepted()).unwrap();
        let body: Value = serde_json::from_str(&response.body).unwrap();
        let expected = json!({"code": 403, "message": "Forbidden", "timestamp": 1_700_000_000, "clientToken": "t"});
        assert_eq!(body, expected);
    }
    let victim = ShadowId::new("victim").unwrap();
    assert!(sections(&store, &victim).await.is_absent());
    let event = event("shadow/victim/update", "victim", payload);
    assert_eq!(requests.respond(&event, deadline).await.unwrap().code, None);
}

/// An item holds 400 KB, a message 128 KB: the response omits fields that do not fit.
#[tokio::test]
async fn a_response_fits_a_message() {
    let (function, _) = in_memory(Layout::Combined);
    let members = |from: usize, to: usize| {
        let members: Vec<String> = (from..to).map(|n| format!("\"m{n}\":{n}")).collect();
        let members = members.join(",");
        format!("{{\"state\":{{\"reported\":{{{members}}}}},\"verbose\":true}}")
    };
    let (topic, response) = function
        .request("shadow/lamp/update", members(0, 6000).as_bytes())
        .await;
    assert_eq!(topic, "shadow/lamp/update/accepted");
    assert_eq!(response["truncated"], json!(["verdicts", "metadata"]));
    assert_eq!(response["version"], 1);
    let (_, response) = function.request("shadow/lamp/get", b"").await;
    assert_eq!(response["truncated"], json!(["metadata"]));
    assert_eq!(response["state"]["reported"]["m5999"], 5999);
    function
        .request("shadow/lamp/update", members(6000, 13000).as_bytes())
        .await;
    let (topic, response) = function.request("shadow/lamp/get", b"").await;
    assert_eq!(topic, "shadow/lamp/get/rejected");
    assert_eq!(response["code"], 413);
}
