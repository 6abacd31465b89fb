//! The function as Lambda runs it: a process, an event, an answer.

use std::sync::{Arc, Mutex};

use antumbra_testkit::lambda::{Lambda, Request, serve};
use serde_json::Value;

use crate::support::{rabbitmq, says, sqs};

const BINARY: &str = env!("CARGO_BIN_EXE_antumbra-sensor-ingest");

/// SQS and a DynamoDB without sensors, at one address.
fn aws(asked: Arc<Mutex<Vec<Request>>>) -> String {
    let address = serve(move |request| {
        asked.lock().unwrap().push(request.clone());
        let json = "content-type: application/x-amz-json-1.0\r\n".to_owned();
        let operation = request.target.rsplit('.').next().unwrap_or_default();
        let body: Value = serde_json::from_str(&request.body).unwrap_or_default();
        let answer = match operation {
            "SendMessageBatch" => {
                let sent = |entry: &Value| {
                    let id = &entry["Id"];
                    serde_json::json!({"Id": id, "MessageId": "m", "MD5OfMessageBody": "x"})
                };
                let entries = body["Entries"].as_array().unwrap().iter().map(sent);
                serde_json::json!({"Successful": entries.collect::<Vec<_>>(), "Failed": []})
            }
            _ => serde_json::json!({}),
        };
        (json, answer.to_string())
    });
    format!("http://{address}")
}

#[test]
fn a_bad_message_ends_in_the_quarantine_and_the_answer_is_empty() {
    let asked: Arc<Mutex<Vec<Request>>> = Arc::default();
    let aws = aws(Arc::clone(&asked));
    let environment = [
        ("TABLE", "antumbra".to_owned()),
        ("AWS_ENDPOINT_URL", aws.clone()),
        (
            "QUARANTINE_QUEUE_URL",
            format!("{aws}/000000000000/quarantine"),
        ),
    ];
    let function = Lambda::start(BINARY, &environment);
    let answer = function.invoke(&sqs(&[("m1", 60, "gibberish")]).to_string());
    assert_eq!(answer.unwrap(), r#"{"batchItemFailures":[]}"#);
    let answer = function.invoke(&rabbitmq(&[("q::/", &[(false, b"gibberish")])]).to_string());
    assert_eq!(answer.unwrap(), r#"{"batchItemFailures":[]}"#);
    let asked = asked.lock().unwrap();
    let bodies: Vec<Value> = asked
        .iter()
        .map(|request| serde_json::from_str(&request.body).unwrap())
        .collect();
    assert_eq!(bodies.len(), 2);
    for body in bodies {
        let entry = &body["Entries"][0];
        assert_eq!(entry["MessageBody"], "gibberish");
        assert_eq!(
            entry["MessageAttributes"]["reason"]["StringValue"],
            "NotJson"
        );
    }
}

#[test]
fn an_event_that_is_none_and_a_batch_that_failed_are_errors() {
    let environment = [
        ("TABLE", "antumbra".to_owned()),
        (
            "AWS_ENDPOINT_URL",
            format!("http://{}", antumbra_testkit::lambda::nowhere()),
        ),
        ("QUARANTINE_QUEUE_URL", "http://127.0.0.1:9/q".to_owned()),
    ];
    let function = Lambda::start(BINARY, &environment);
    let told = function.invoke("{}").unwrap_err();
    assert!(told.contains("EventError"), "{told}");
    // Nobody answers for DynamoDB: a queue's message is reported, RabbitMQ's batch fails.
    let text = says("a", 1);
    let answer = function.invoke(&sqs(&[("m1", 60, &text)]).to_string());
    let failed = r#"{"batchItemFailures":[{"itemIdentifier":"m1"}]}"#;
    assert_eq!(answer.unwrap(), failed);
    let event = rabbitmq(&[("q::/", &[(false, text.as_bytes())])]);
    let told = function.invoke(&event.to_string()).unwrap_err();
    assert!(told.contains("1 of 1 messages"), "{told}");
}

#[test]
fn a_wrong_environment_refuses_to_start() {
    for (name, value) in [
        ("DATA", "anything"),
        ("SENSOR_ID_PATTERN", "("),
        ("AUTO_REGISTER", "maybe"),
        ("AUTO_REGISTER_LOCATION", "only/a/city"),
        ("TABLE", ""),
    ] {
        let mut environment = vec![
            ("TABLE", "antumbra".to_owned()),
            ("QUARANTINE_QUEUE_URL", "http://127.0.0.1:9/q".to_owned()),
        ];
        environment.retain(|(other, _)| *other != name);
        environment.push((name, value.to_owned()));
        assert!(!Lambda::start(BINARY, &environment).ends_well(), "{name}");
    }
}
