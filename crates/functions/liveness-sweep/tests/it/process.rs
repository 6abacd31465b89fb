//! The binary as Lambda runs it, with the event of a schedule.

use std::time::{SystemTime, UNIX_EPOCH};

use antumbra_service::deliveries::DUE_SHARDS;
use antumbra_testkit::lambda::{AwsServer, Environment, Lambda, assert_rejects, unreachable_url};
use serde_json::{Value, json};

const BINARY: &str = env!("CARGO_BIN_EXE_antumbra-liveness-sweep");
const EVENT: &str = r#"{"version":"0","id":"53dc4d37-cffa-4f76-80c9-8b7d4a4d2eaa",
    "detail-type":"Scheduled Event","source":"aws.events","account":"123456789012",
    "time":"2026-10-08T16:53:06Z","region":"us-east-1",
    "resources":["arn:aws:events:us-east-1:123456789012:rule/liveness-sweep"],"detail":{}}"#;

#[test]
fn a_sweep_sends_a_marker_reads_progress_and_queries_each_shard() {
    // The marker has arrived, and no sensor is due.
    let aws = AwsServer::responding(|request| match request.operation() {
        "GetItem" => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
            Some(json!({"Item": {"reached": {"N": now.as_millis().to_string()}}}))
        }
        "Query" => Some(json!({"Items": [], "Count": 0, "ScannedCount": 0})),
        _ => None,
    });
    let environment = [
        ("TABLE", "antumbra".to_owned()),
        ("SHARDS", "4".to_owned()),
        ("GRACE_SECONDS", "0".to_owned()),
        ("SIGNALS_QUEUE_URL", aws.queue_url("antumbra-signals")),
        ("DELIVERIES_QUEUE_URL", aws.queue_url("antumbra-deliveries")),
        (
            "DELIVERIES_FIFO_QUEUE_URL",
            aws.queue_url("antumbra-deliveries.fifo"),
        ),
        ("AWS_ENDPOINT_URL", aws.url()),
    ];
    let function = Lambda::start(BINARY, &environment);
    let report: Value = serde_json::from_str(&function.invoke(EVENT).unwrap()).unwrap();
    assert_eq!(
        (&report["lost"], &report["finished"]),
        (&json!(0), &json!(true))
    );
    assert!(
        report["behindMilliseconds"].as_u64().unwrap() < 1000,
        "{report}"
    );
    let requests = aws.requests();
    let mut operations: Vec<&str> = requests.iter().map(|request| request.operation()).collect();
    operations.sort_unstable();
    // One query per shard of both indexes, and of the index of unregistered sensors.
    let queries = ["Query"; 4 + DUE_SHARDS as usize + 16];
    let expected = [&["GetItem"][..], &queries, &["SendMessageBatch"]].concat();
    assert_eq!(operations, expected);
}

#[test]
fn an_unreachable_table_is_an_error() {
    let mut environment = required();
    environment.push(("AWS_ENDPOINT_URL", unreachable_url()));
    let function = Lambda::start(BINARY, &environment);
    let error = function.invoke(EVENT).unwrap_err();
    assert!(error.contains("SweepError"), "{error}");
}

#[test]
fn an_invalid_environment_is_rejected() {
    let changes = [
        ("TABLE", None),
        ("DELIVERIES_QUEUE_URL", None),
        ("DELIVERIES_FIFO_QUEUE_URL", None),
        ("SHARDS", Some("many")),
    ];
    assert_rejects(BINARY, &required(), &changes);
}

fn required() -> Environment {
    vec![
        ("TABLE", "antumbra".to_owned()),
        ("DELIVERIES_QUEUE_URL", "http://sqs/0/deliveries".to_owned()),
        (
            "DELIVERIES_FIFO_QUEUE_URL",
            "http://sqs/0/deliveries.fifo".to_owned(),
        ),
    ]
}
