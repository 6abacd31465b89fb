//! The function as Lambda runs it: a process that takes a rule's event and answers over AWS IoT.
#![allow(clippy::unwrap_used)]

use std::sync::{Arc, Mutex};

use antumbra_dynamodb::{MAIN, Table};
use antumbra_testkit::dynamodb::{Endpoint, address, client, table_name};
use antumbra_testkit::lambda::{Lambda, Request, nowhere, serve};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

const BINARY: &str = env!("CARGO_BIN_EXE_antumbra-shadow-requests");

fn event(topic: &str, payload: &str) -> String {
    let payload = STANDARD.encode(payload);
    json!({"payload": payload, "topic": topic, "clientId": "lamp", "timestamp": 1}).to_string()
}

/// AWS IoT's data plane that takes every message, and what it took.
fn iot() -> (String, Arc<Mutex<Vec<Request>>>) {
    let taken: Arc<Mutex<Vec<Request>>> = Arc::default();
    let taking = Arc::clone(&taken);
    let address = serve(move |request| {
        taking.lock().unwrap().push(request.clone());
        let json = "content-type: application/json\r\n";
        (json.to_owned(), "{}".to_owned())
    });
    (format!("http://{address}"), taken)
}

#[test]
fn a_report_is_accepted_and_read_back() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let name = table_name();
    let endpoint = runtime.block_on(async {
        let endpoint = Endpoint::start(address()).await;
        let table = Table {
            name: &name,
            ..MAIN
        };
        table.ensure(&client(&endpoint)).await.unwrap();
        endpoint
    });
    let (iot, taken) = iot();
    let function = Lambda::start(
        BINARY,
        &[
            ("TABLE", name.clone()),
            ("IOT_ENDPOINT", iot),
            ("AWS_ENDPOINT_URL_DYNAMODB", endpoint.url()),
        ],
    );
    let update = r#"{"state":{"reported":{"led":"on"}},"clientToken":"t"}"#;
    for (operation, payload) in [("update", update), ("get", "")] {
        let answer = function.invoke(&event(&format!("shadow/lamp/{operation}"), payload));
        assert_eq!(answer.as_deref(), Ok("null"), "{operation}");
    }
    let taken = taken.lock().unwrap();
    let said: Vec<(bool, Value)> = taken
        .iter()
        .zip(["update", "get"])
        .map(|(request, operation)| {
            let topic = format!("/topics/shadow%2Flamp%2F{operation}%2Faccepted");
            let body: Value = serde_json::from_str(&request.body).unwrap();
            let on = request.first_line.contains(&topic);
            (on, body["state"]["reported"]["led"].clone())
        })
        .collect();
    assert_eq!(
        said,
        [(true, json!("on")), (true, json!("on"))],
        "{taken:?}"
    );
    let refused = function.invoke(r#"{"Records":[]}"#).unwrap_err();
    assert!(refused.contains("EventError"), "{refused}");
}

#[test]
fn a_wrong_environment_refuses_to_start() {
    let table = ("TABLE", "antumbra".to_owned());
    let wrong: [&[(&str, String)]; 3] = [
        &[],
        &[table.clone(), ("COMBINED", "perhaps".to_owned())],
        &[table.clone(), ("OWN_SHADOWS_ONLY", "2".to_owned())],
    ];
    for environment in wrong {
        let function = Lambda::start(BINARY, environment);
        assert!(!function.ends_well(), "{environment:?}");
    }
    let endpoint = ("AWS_ENDPOINT_URL", format!("http://{}", nowhere()));
    let function = Lambda::start(BINARY, &[table, endpoint]);
    let failed = function.invoke(&event("elsewhere", "")).unwrap_err();
    assert!(!failed.is_empty());
}
