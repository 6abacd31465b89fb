//! The binary as Lambda runs it.

use antumbra_testkit::lambda::{
    AwsServer, Environment, Lambda, NO_FAILURES, assert_rejects, unreachable_url,
};

use crate::support::{lock_signal, rabbitmq, sqs};

const BINARY: &str = env!("CARGO_BIN_EXE_antumbra-sensor-ingest");

fn environment(aws: String, quarantine: String) -> Environment {
    vec![
        ("TABLE", "antumbra".to_owned()),
        ("AWS_ENDPOINT_URL", aws),
        ("QUARANTINE_QUEUE_URL", quarantine),
    ]
}

#[test]
fn bad_messages_of_both_sources_are_quarantined() {
    let aws = AwsServer::start();
    let environment = environment(aws.url(), aws.queue_url("quarantine"));
    let function = Lambda::start(BINARY, &environment);
    for event in [
        sqs(&[("m1", 60, "gibberish")]),
        rabbitmq(&[("q::/", &[(false, b"gibberish")])]),
    ] {
        assert_eq!(function.invoke(&event.to_string()).unwrap(), NO_FAILURES);
    }
    assert_eq!(aws.requests().len(), 2);
    let quarantined = aws.sent();
    assert_eq!(quarantined.len(), 2);
    for message in quarantined {
        assert_eq!(message["MessageBody"], "gibberish");
        let reason = &message["MessageAttributes"]["reason"];
        assert_eq!(reason["StringValue"], "NotJson");
    }
}

#[test]
fn unknown_events_and_failed_rabbitmq_batches_are_errors() {
    let environment = environment(unreachable_url(), "http://127.0.0.1:9/q".to_owned());
    let function = Lambda::start(BINARY, &environment);
    let error = function.invoke("{}").unwrap_err();
    assert!(error.contains("EventError"), "{error}");
    // DynamoDB is unreachable: a message of SQS is reported, a batch of RabbitMQ fails.
    let text = lock_signal("a", 1);
    let response = function.invoke(&sqs(&[("m1", 60, &text)]).to_string());
    let failed = r#"{"batchItemFailures":[{"itemIdentifier":"m1"}]}"#;
    assert_eq!(response.unwrap(), failed);
    let event = rabbitmq(&[("q::/", &[(false, text.as_bytes())])]);
    let error = function.invoke(&event.to_string()).unwrap_err();
    assert!(error.contains("1 of 1 messages"), "{error}");
}

#[test]
fn an_invalid_environment_is_rejected() {
    let environment = environment(unreachable_url(), "http://127.0.0.1:9/q".to_owned());
    let changes = [
        ("DATA", Some("anything")),
        ("SENSOR_ID_PATTERN", Some("(")),
        ("AUTO_REGISTER", Some("maybe")),
        ("AUTO_REGISTER_LOCATION", Some("only/a/city")),
        ("TABLE", Some("")),
    ];
    assert_rejects(BINARY, &environment, &changes);
}
