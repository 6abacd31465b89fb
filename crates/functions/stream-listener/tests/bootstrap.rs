//! The function as Lambda runs it: a process that polls the runtime API and answers there.
#![allow(clippy::unwrap_used)]

use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::mpsc::channel;

use antumbra_testkit::lambda::{Lambda, nowhere, serve};

const EVENT: &str = r#"{"Records":[{"eventID":"1","eventName":"INSERT","eventSource":"aws:dynamodb","dynamodb":{
    "SequenceNumber":"100","Keys":{"PK":{"S":"DS#lamp"},"SK":{"S":"DSR#main"}},
    "NewImage":{"version":{"N":"1"},"reported":{"M":{"led":{"S":"on"}}}}}}]}"#;

fn start(registrations: &std::path::Path, sqs: SocketAddr) -> Lambda {
    let queue = |name: &str| format!("http://{sqs}/000000000000/{name}");
    let environment = [
        ("AWS_ENDPOINT_URL", format!("http://{sqs}")),
        ("UNDELIVERABLE_QUEUE_URL", queue("undeliverable")),
        ("QUEUE", queue("changes")),
        ("REGISTRATIONS", registrations.to_str().unwrap().to_owned()),
    ];
    Lambda::start(env!("CARGO_BIN_EXE_antumbra-stream-listener"), &environment)
}

#[test]
fn an_event_goes_in_a_batch_goes_out_and_the_answer_is_empty() {
    let directory = tempfile::tempdir().unwrap();
    let rule = r#"{"name":"all","to":{"sqs":{"queue":"${env:QUEUE}"}}}"#;
    std::fs::write(directory.path().join("all.json"), rule).unwrap();
    let (sent, queue) = channel();
    let sent = Mutex::new(sent);
    let sqs = serve(move |request| {
        let batch: serde_json::Value = serde_json::from_str(&request.body).unwrap();
        let entry = &batch["Entries"][0];
        let id = entry["Id"].as_str().unwrap();
        let body = entry["MessageBody"].as_str().unwrap();
        sent.lock().unwrap().send(body.to_owned()).unwrap();
        let kind = "content-type: application/x-amz-json-1.0\r\n";
        let answer = format!(
            r#"{{"Successful":[{{"Id":"{id}","MessageId":"m","MD5OfMessageBody":"x"}}],"Failed":[]}}"#
        );
        (kind.to_owned(), answer)
    });
    let function = start(directory.path(), sqs);
    for _ in 0..2 {
        let answer = function.invoke(EVENT).unwrap();
        assert_eq!(answer, r#"{"batchItemFailures":[]}"#);
        let notification: serde_json::Value = serde_json::from_str(&queue.recv().unwrap()).unwrap();
        assert_eq!(notification["diff"]["added"]["/led"], "on");
        assert_eq!(notification["version"], 1);
    }
    let refused = function.invoke("[]").unwrap_err();
    assert!(refused.contains("EventError"), "{refused}");
}

#[test]
fn a_wrong_registration_refuses_to_start() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("bad.json"), r#"{"name":"bad"}"#).unwrap();
    assert!(!start(directory.path(), nowhere()).ends_well());
}
