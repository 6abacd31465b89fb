//! The binary as Lambda runs it, with events of API Gateway. Each file of `testdata` holds an event and the
//! exact response to it; they run in the order of their names, on the same tables.

use std::path::{Path, PathBuf};

use antumbra_dynamodb::{MAIN, MESSAGES};
use antumbra_testkit::dynamodb::TestTable;
use antumbra_testkit::lambda::{Environment, Lambda, assert_rejects, unreachable_url};
use serde_json::Value;

const BINARY: &str = env!("CARGO_BIN_EXE_antumbra-http-api");

fn environment(endpoint: &str, main: &str, messages: &str) -> Environment {
    let queue = format!("{}/000000000000/deliveries", unreachable_url());
    let mut environment = vec![
        ("TABLE", main.to_owned()),
        ("MESSAGES_TABLE", messages.to_owned()),
        ("AWS_ENDPOINT_URL", endpoint.to_owned()),
    ];
    environment.extend(QUEUES.map(|name| (name, queue.clone())));
    environment
}

const QUEUES: [&str; 10] = [
    "DELIVERIES_QUEUE_URL",
    "DELIVERIES_FIFO_QUEUE_URL",
    "DELIVERIES_DEAD_QUEUE_URL",
    "DELIVERIES_DEAD_FIFO_QUEUE_URL",
    "UNDELIVERABLE_QUEUE_URL",
    "QUARANTINE_QUEUE_URL",
    "SPILL_QUEUE_URL",
    "INBOUND_QUEUE_URL",
    "SIGNALS_QUEUE_URL",
    "OUTBOUND_QUEUE_URL",
];

fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    let files = std::fs::read_dir(folder).unwrap();
    let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    assert!(files.len() > 10);
    files
}

#[tokio::test(flavor = "multi_thread")]
async fn gateway_events_get_the_exact_response() {
    let main = TestTable::create(MAIN).await;
    let messages = main.another(MESSAGES).await;
    let environment = environment(&main.endpoint.url(), &main.name, &messages);
    let function = Lambda::start(BINARY, &environment);
    for path in cases() {
        let mut case: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let response = function.invoke(&case["event"].to_string()).unwrap();
        let response: Value = serde_json::from_str(&response).unwrap();
        if std::env::var_os("ANTUMBRA_WRITE_RESPONSES").is_some() {
            case["response"] = response.clone();
            let text = serde_json::to_string_pretty(&case).unwrap() + "\n";
            std::fs::write(&path, text).unwrap();
        }
        assert_eq!(response, case["response"], "{}", path.display());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_environment_is_rejected() {
    let table = TestTable::create(MAIN).await;
    let environment = environment(&table.endpoint.url(), &table.name, "messages");
    let changes = [
        ("TABLE", None),
        ("MESSAGES_TABLE", None),
        ("AUTH", Some("perhaps")),
        ("WEBHOOK_ALLOW", Some("http://")),
        ("SHARDS", Some("many")),
        ("TIMESTAMP_FIELDS", Some("timestamp,,ts")),
        ("TIMESTAMP_FIELDS", Some("ts, ts")),
        ("MQTT_ORDER", Some("perhaps")),
    ];
    let changes: Vec<_> = changes
        .into_iter()
        .chain(QUEUES.map(|name| (name, None)))
        .collect();
    assert_rejects(BINARY, &environment, &changes);
}
