//! The binary as Lambda runs it: an event of an IoT rule, and a response over AWS IoT.

use std::time::{SystemTime, UNIX_EPOCH};

use antumbra_dynamodb::MAIN;
use antumbra_testkit::dynamodb::TestTable;
use antumbra_testkit::lambda::{AwsServer, Environment, Lambda, assert_rejects, unreachable_url};

use crate::support::event_at;

const BINARY: &str = env!("CARGO_BIN_EXE_antumbra-shadow-requests");

fn event_text(topic: &str, payload: &str) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let event = event_at(topic, "lamp", payload.as_bytes(), now.as_millis() as i64);
    String::from_utf8(event).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_is_accepted_and_read_back() {
    let table = TestTable::create(MAIN).await;
    let iot = AwsServer::start();
    let environment = [
        ("TABLE", table.name),
        ("IOT_ENDPOINT", iot.url()),
        ("AWS_ENDPOINT_URL_DYNAMODB", table.endpoint.url()),
    ];
    let function = Lambda::start(BINARY, &environment);
    let update = r#"{"state":{"reported":{"led":"on"}},"clientToken":"t"}"#;
    for (operation, payload) in [("update", update), ("get", "")] {
        let event = event_text(&format!("shadow/lamp/{operation}"), payload);
        let response = function.invoke(&event);
        assert_eq!(response.as_deref(), Ok("null"), "{operation}");
        let published = iot.requests().pop().unwrap();
        let topic = format!("/topics/shadow%2Flamp%2F{operation}%2Faccepted");
        assert!(published.first_line.contains(&topic), "{published:?}");
        assert_eq!(published.json()["state"]["reported"]["led"], "on");
    }
    assert_eq!(iot.requests().len(), 2);
    let error = function.invoke(r#"{"Records":[]}"#).unwrap_err();
    assert!(error.contains("EventError"), "{error}");
}

#[test]
fn an_invalid_environment_is_rejected() {
    let environment: Environment = vec![
        ("TABLE", "antumbra".to_owned()),
        ("AWS_ENDPOINT_URL", unreachable_url()),
    ];
    let changes = [
        ("TABLE", None),
        ("COMBINED", Some("perhaps")),
        ("OWN_SHADOWS_ONLY", Some("2")),
    ];
    assert_rejects(BINARY, &environment, &changes);
    let function = Lambda::start(BINARY, &environment);
    let error = function.invoke(&event_text("elsewhere", "")).unwrap_err();
    assert!(!error.is_empty());
}
