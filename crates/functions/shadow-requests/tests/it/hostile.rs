//! Invalid and hostile requests: the right response, and nothing written.

use std::time::Duration;

use antumbra_memory::MemoryShadows;
use antumbra_service::clock::Clock;
use antumbra_service::shadows::{Layout, ShadowId};
use antumbra_shadow_requests::Config;
use serde_json::{Value, json};

use crate::support::{configured, event, in_memory, sections};

fn deep(levels: usize) -> String {
    let (open, close) = ("{\"a\":".repeat(levels), "}".repeat(levels));
    format!("{{\"state\":{{\"desired\":{open}1{close}}}}}")
}

#[tokio::test]
async fn invalid_requests_are_rejected_and_write_nothing() {
    let json = "Invalid JSON";
    let large = format!(
        r#"{{"state":{{"desired":{{"a":"{}"}}}}}}"#,
        "x".repeat(500 * 1024)
    );
    let token = format!(
        r#"{{"state":{{"desired":{{}}}},"clientToken":"{}"}}"#,
        "t".repeat(65)
    );
    let nodes = |state: &str| format!("{{\"state\":{state}}}").into_bytes();
    let with =
        |member: &str| format!("{{\"state\":{{\"desired\":{{\"a\":1}}}},{member}}}").into_bytes();
    let cases: Vec<(Vec<u8>, u16, &str)> = vec![
        (b"".to_vec(), 400, json),
        (b"not json".to_vec(), 400, json),
        (b"[]".to_vec(), 400, json),
        (
            b"\x0c{\"state\":{\"desired\":{\"a\":1}}}".to_vec(),
            400,
            json,
        ),
        (b"null".to_vec(), 400, json),
        (b"{\"state\":{}} more".to_vec(), 400, json),
        (b"{\"state\":{\"desired\":{\"a\":1}}".to_vec(), 400, json),
        (
            b"{\"state\":{\"desired\":{\"a\":1}},\"state\":{}}".to_vec(),
            400,
            json,
        ),
        (nodes(r#"{"desired":{"a":1},"desired":{"a":2}}"#), 400, json),
        (nodes(r#"{"desired":{"a":"\ud800"}}"#), 400, json),
        (b"{}".to_vec(), 400, "Missing required node: state"),
        (nodes("{}"), 400, "Missing required node: state"),
        (nodes("null"), 400, "State node must be an object"),
        (nodes("[]"), 400, "State node must be an object"),
        (nodes("\"on\""), 400, "State node must be an object"),
        (
            nodes(r#"{"desired":7}"#),
            400,
            "Desired node must be an object",
        ),
        (
            nodes(r#"{"desired":[{}]}"#),
            400,
            "Desired node must be an object",
        ),
        (
            nodes(r#"{"reported":"on"}"#),
            400,
            "Reported node must be an object",
        ),
        (
            nodes(r#"{"reported":{},"delta":{}}"#),
            400,
            "State contains an invalid node",
        ),
        (with(r#""version":"1""#), 400, "Invalid version"),
        (with(r#""version":1.5"#), 400, "Invalid version"),
        (with(r#""version":-1"#), 400, "Invalid version"),
        (with(r#""version":null"#), 400, "Invalid version"),
        (
            with(r#""version":99999999999999999999"#),
            400,
            "Invalid version",
        ),
        (with(r#""clientToken":7"#), 400, "Invalid clientToken"),
        (with(r#""clientToken":"""#), 400, "Invalid clientToken"),
        (with(r#""verbose":"yes""#), 400, "Invalid verbose"),
        (with(r#""metadata":{}"#), 400, "Unknown node: metadata"),
        (token.into_bytes(), 400, "Invalid clientToken"),
        (
            deep(32).into_bytes(),
            400,
            "JSON contains too many levels of nesting; maximum is 31",
        ),
        (
            deep(200).into_bytes(),
            400,
            "JSON contains too many levels of nesting; maximum is 31",
        ),
        (
            large.into_bytes(),
            413,
            "The payload exceeds the maximum size allowed",
        ),
        (
            b"{\"state\":{\"desired\":{\"a\":\"\xff\"}}}".to_vec(),
            415,
            "Unsupported documented encoding; supported encoding is UTF-8",
        ),
        (with(r#""version":7"#), 409, "Version conflict"),
    ];
    for layout in [Layout::Separate, Layout::Combined] {
        let (function, store) = in_memory(layout);
        for (payload, code, message) in &cases {
            let (topic, response) = function.request("shadow/lamp/update", payload).await;
            let shown = String::from_utf8_lossy(&payload[..payload.len().min(80)]).into_owned();
            assert_eq!(topic, "shadow/lamp/update/rejected", "{shown}");
            assert_eq!(response["code"], *code, "{shown}: {response}");
            assert_eq!(response["message"], *message, "{shown}");
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
        let handled = requests.respond(&event, deadline).await.unwrap();
        assert_eq!(handled.code, Some(403));
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
