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

#[test]
fn an_invalid_registration_is_rejected() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("bad.json"), r#"{"name":"bad"}"#).unwrap();
    let environment = environment(directory.path(), &AwsServer::start());
    assert_rejects(BINARY, &environment, &[("UNUSED", None)]);
}
