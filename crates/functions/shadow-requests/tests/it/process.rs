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

fn environment(table: &TestTable, iot: &AwsServer) -> Environment {
    vec![
        ("TABLE", table.name.clone()),
        ("IOT_ENDPOINT", iot.url()),
        ("AWS_ENDPOINT_URL_DYNAMODB", table.endpoint.url()),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_is_accepted_and_read_back() {
    let (table, iot) = (TestTable::create(MAIN).await, AwsServer::start());
    let function = Lambda::start(BINARY, &environment(&table, &iot));
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
    let error = function.invoke(&event_text("elsewhere", "")).unwrap_err();
    assert!(!error.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_environment_is_rejected() {
    let (table, iot) = (TestTable::create(MAIN).await, AwsServer::start());
    let unreachable = unreachable_url();
    let changes = [
        ("TABLE", None),
        ("COMBINED", Some("perhaps")),
        ("OWN_SHADOWS_ONLY", Some("2")),
        ("AWS_ENDPOINT_URL_DYNAMODB", Some(unreachable.as_str())),
    ];
    assert_rejects(BINARY, &environment(&table, &iot), &changes);
}
