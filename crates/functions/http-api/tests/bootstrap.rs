//! The function as Lambda runs it, called as API Gateway calls it. Each file of `testdata` holds an event
//! and the exact answer to it; they are run in the order of their names, on one table.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use antumbra_dynamodb::{MAIN, MESSAGES, Table};
use antumbra_testkit::dynamodb::{Endpoint, address, client, table_name};
use antumbra_testkit::lambda::{Lambda, nowhere};
use serde_json::Value;

const BINARY: &str = env!("CARGO_BIN_EXE_antumbra-http-api");

fn environment(endpoint: &str, main: &str, messages: &str) -> Vec<(&'static str, String)> {
    let queue = format!("http://{}/000000000000/deliveries", nowhere());
    vec![
        ("TABLE", main.to_owned()),
        ("MESSAGES_TABLE", messages.to_owned()),
        ("DELIVERIES_QUEUE_URL", queue.clone()),
        ("DELIVERIES_FIFO_QUEUE_URL", format!("{queue}.fifo")),
        ("AWS_ENDPOINT_URL", endpoint.to_owned()),
    ]
}

fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    let files = std::fs::read_dir(folder).unwrap();
    let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    assert!(files.len() > 10);
    files
}

#[test]
fn events_of_the_gateway_are_answered_exactly() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (main, messages) = (table_name(), table_name());
    let endpoint = runtime.block_on(async {
        let endpoint = Endpoint::start(address()).await;
        let client = client(&endpoint);
        let main = Table {
            name: &main,
            ..MAIN
        };
        main.ensure(&client).await.unwrap();
        let messages = Table {
            name: &messages,
            ..MESSAGES
        };
        messages.ensure(&client).await.unwrap();
        endpoint
    });
    let function = Lambda::start(BINARY, &environment(&endpoint.url(), &main, &messages));
    for path in cases() {
        let mut case: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let answer = function.invoke(&case["event"].to_string()).unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        if std::env::var_os("ANTUMBRA_WRITE_ANSWERS").is_some() {
            case["answer"] = answer.clone();
            let text = serde_json::to_string_pretty(&case).unwrap() + "\n";
            std::fs::write(&path, text).unwrap();
        }
        assert_eq!(answer, case["answer"], "{}", path.display());
    }
}

#[test]
fn a_wrong_environment_refuses_to_start() {
    let whole = environment("http://127.0.0.1:1", "main", "messages");
    for missing in 0..4 {
        let mut wrong = whole.clone();
        wrong.remove(missing);
        assert!(!Lambda::start(BINARY, &wrong).ends_well(), "{wrong:?}");
    }
    for (name, value) in [
        ("AUTH", "perhaps"),
        ("WEBHOOK_ALLOW", "http://"),
        ("SHARDS", "many"),
    ] {
        let mut wrong = whole.clone();
        wrong.push((name, value.to_owned()));
        assert!(!Lambda::start(BINARY, &wrong).ends_well(), "{name}={value}");
    }
}
