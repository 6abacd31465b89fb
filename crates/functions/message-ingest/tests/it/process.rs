//! The binary as Lambda runs it.

use antumbra_testkit::lambda::{
    AwsServer, Environment, Lambda, NO_FAILURES, assert_rejects, unreachable_url,
};

use crate::support::{Bench, event, record};

const BINARY: &str = env!("CARGO_BIN_EXE_antumbra-message-ingest");

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_stored_or_quarantined() {
    let bench = Bench::new().await;
    let sqs = AwsServer::start();
    let function = Lambda::start(
        BINARY,
        &[
            ("TABLE", bench.table.clone()),
            ("QUARANTINE_QUEUE_URL", sqs.queue_url("quarantine")),
            ("uuidKey", "header.imei".to_owned()),
            ("messageIdKey", "header.at".to_owned()),
            ("MESSAGE_ID_DIGITS", "4".to_owned()),
            ("MESSAGE_RETENTION_DAYS", "30".to_owned()),
            ("AWS_ENDPOINT_URL_DYNAMODB", bench.endpoint.url()),
            ("AWS_ENDPOINT_URL_SQS", sqs.url()),
        ],
    );
    let event = event([
        record(
            "m-0",
            r#"{"header":{"imei":300234010753370,"at":10}}"#,
            None,
        ),
        record("m-1", "nonsense", None),
        record("m-2", r#"{"header":{"imei":300234010753370,"at":9}}"#, None),
    ]);
    for _ in 0..2 {
        let response = function.invoke(&event.to_string()).unwrap();
        assert_eq!(response, NO_FAILURES);
    }
    let ids = bench.ids("300234010753370").await;
    assert_eq!(ids, ["0009-1564669332364-m-2", "0010-1564669332364-m-0"]);
    let quarantined = &sqs.sent()[0];
    assert_eq!(quarantined["MessageBody"], "nonsense");
    let reason = &quarantined["MessageAttributes"]["reason"];
    assert_eq!(reason["StringValue"], "NotJson");
    let error = function.invoke("[]").unwrap_err();
    assert!(error.contains("EventError"), "{error}");
}

#[test]
fn an_invalid_environment_is_rejected() {
    let environment: Environment = vec![
        ("TABLE", "messages".to_owned()),
        ("QUARANTINE_QUEUE_URL", format!("{}/q", unreachable_url())),
    ];
    let changes = [
        ("TABLE", None),
        ("QUARANTINE_QUEUE_URL", None),
        ("uuidKey", Some("a..b")),
        ("MESSAGE_ID_DIGITS", Some("many")),
    ];
    assert_rejects(BINARY, &environment, &changes);
}
