//! The binary as Lambda runs it.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use antumbra_testkit::lambda::{AwsServer, Environment, Lambda, NO_FAILURES, assert_rejects};
use serde_json::Value;

const BINARY: &str = env!("CARGO_BIN_EXE_antumbra-stream-listener");
const EVENT: &str = r#"{"Records":[{"eventID":"1","eventName":"INSERT","eventSource":"aws:dynamodb","dynamodb":{
    "SequenceNumber":"100","Keys":{"PK":{"S":"DS#lamp"},"SK":{"S":"DSR#main"}},
    "NewImage":{"version":{"N":"1"},"reported":{"M":{"led":{"S":"on"}}}}}}]}"#;

fn environment(registrations: &Path, sqs: &AwsServer) -> Environment {
    vec![
        ("AWS_ENDPOINT_URL", sqs.url()),
        ("UNDELIVERABLE_QUEUE_URL", sqs.queue_url("undeliverable")),
        ("QUEUE", sqs.queue_url("changes")),
        ("REGISTRATIONS", registrations.to_str().unwrap().to_owned()),
    ]
}

#[test]
fn a_change_is_sent_to_the_registered_queue() {
    let directory = tempfile::tempdir().unwrap();
    let rule = r#"{"name":"all","to":{"sqs":{"queue":"${env:QUEUE}"}}}"#;
    std::fs::write(directory.path().join("all.json"), rule).unwrap();
    let sqs = AwsServer::start();
    let function = Lambda::start(BINARY, &environment(directory.path(), &sqs));
    for sent in 1..=2 {
        assert_eq!(function.invoke(EVENT).unwrap(), NO_FAILURES);
        let messages = sqs.sent();
        assert_eq!(messages.len(), sent);
        let body = messages[sent - 1]["MessageBody"].as_str().unwrap();
        let notification: Value = serde_json::from_str(body).unwrap();
        assert_eq!(notification["diff"]["added"]["/led"], "on");
        assert_eq!(notification["version"], 1);
    }
    let error = function.invoke("[]").unwrap_err();
    assert!(error.contains("EventError"), "{error}");
}

/// A name of 40,000 bytes above thousands of leaves: each of them has a pointer with that name.
#[test]
fn the_worst_item_fits_into_the_memory_of_the_function() {
    let directory = tempfile::tempdir().unwrap();
    let rule =
        r#"{"name":"all","send":["old","new","diff"],"to":{"sqs":{"queue":"${env:QUEUE}"}}}"#;
    std::fs::write(directory.path().join("all.json"), rule).unwrap();
    let sqs = AwsServer::start();
    let function = Lambda::start(BINARY, &environment(directory.path(), &sqs));
    let document = |value: u8| {
        let leaf = |n: usize| format!(r#""{n}":{{"N":"{value}"}}"#);
        let leaves: Vec<String> = (0..20_000).map(leaf).collect();
        let name = "n".repeat(40_000);
        format!(r#"{{"M":{{"{name}":{{"M":{{{}}}}}}}}}"#, leaves.join(","))
    };
    let modified = EVENT.replace("INSERT", "MODIFY").replace(
        r#""NewImage":{"version":{"N":"1"},"reported":{"M":{"led":{"S":"on"}}}}"#,
        &format!(
            r#""OldImage":{{"version":{{"N":"1"}},"reported":{}}},"NewImage":{{"version":{{"N":"2"}},"reported":{}}}"#,
            document(1),
            document(2)
        ),
    );
    assert!(modified.len() > 500_000);
    assert_eq!(function.invoke(&modified).unwrap(), NO_FAILURES);
    let body = sqs.sent()[0]["MessageBody"].as_str().unwrap().to_owned();
    let notification: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(
        notification["truncated"],
        serde_json::json!(["old", "new", "diff"])
    );
    let status = std::fs::read_to_string(format!("/proc/{}/status", function.id()));
    let peak = status.unwrap_or_default();
    let peak = peak.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    // Only Linux reports it.
    if let Some(peak) = peak {
        let kilobytes: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
        assert!(kilobytes < 256 * 1024, "{kilobytes} KB");
    }
}

#[test]
fn an_invalid_registration_is_rejected() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("bad.json"), r#"{"name":"bad"}"#).unwrap();
    let environment = environment(directory.path(), &AwsServer::start());
    assert_rejects(BINARY, &environment, &[("UNUSED", None)]);
}
