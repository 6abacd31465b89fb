//! The function as Lambda runs it: a schedule's event in, counts out.

use std::sync::{Arc, Mutex};

use antumbra_testkit::lambda::{Lambda, Request, serve};
use serde_json::{Value, json};

const BINARY: &str = env!("CARGO_BIN_EXE_antumbra-liveness-sweep");
const EVENT: &str = r#"{"version":"0","id":"53dc4d37-cffa-4f76-80c9-8b7d4a4d2eaa",
    "detail-type":"Scheduled Event","source":"aws.events","account":"123456789012",
    "time":"2026-10-08T16:53:06Z","region":"us-east-1",
    "resources":["arn:aws:events:us-east-1:123456789012:rule/liveness-sweep"],"detail":{}}"#;

/// SQS and a DynamoDB in which the marker is there at once and nobody is due.
fn aws(asked: Arc<Mutex<Vec<Request>>>) -> String {
    let address = serve(move |request| {
        asked.lock().unwrap().push(request.clone());
        let operation = request.target.rsplit('.').next().unwrap_or_default();
        let answer = match operation {
            "SendMessageBatch" => {
                let body: Value = serde_json::from_str(&request.body).unwrap();
                let id = &body["Entries"][0]["Id"];
                let sent = json!({"Id": id, "MessageId": "m", "MD5OfMessageBody": "x"});
                json!({"Successful": [sent], "Failed": []})
            }
            "GetItem" => {
                let now = std::time::SystemTime::now();
                let now = now.duration_since(std::time::UNIX_EPOCH).unwrap();
                json!({"Item": {"reached": {"N": now.as_millis().to_string()}}})
            }
            _ => json!({"Items": [], "Count": 0, "ScannedCount": 0}),
        };
        let json = "content-type: application/x-amz-json-1.0\r\n".to_owned();
        (json, answer.to_string())
    });
    format!("http://{address}")
}

#[test]
fn a_tick_is_a_marker_a_look_and_a_query_per_shard() {
    let asked: Arc<Mutex<Vec<Request>>> = Arc::default();
    let aws = aws(Arc::clone(&asked));
    let environment = [
        ("TABLE", "antumbra".to_owned()),
        ("SHARDS", "4".to_owned()),
        ("GRACE_SECONDS", "0".to_owned()),
        (
            "SIGNALS_QUEUE_URL",
            format!("{aws}/000000000000/antumbra-signals"),
        ),
        ("AWS_ENDPOINT_URL", aws),
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
    let asked = asked.lock().unwrap();
    let mut targets: Vec<&str> = asked
        .iter()
        .map(|request| request.target.rsplit('.').next().unwrap())
        .collect();
    targets.sort_unstable();
    // One query per shard, and one for what unregistered sensors left behind.
    let queries = ["Query"; 4 + 1];
    let expected = ["GetItem"]
        .iter()
        .chain(&queries)
        .chain(&["SendMessageBatch"]);
    assert!(targets.iter().eq(expected), "{targets:?}");
}

#[test]
fn a_table_that_does_not_answer_is_an_error() {
    let environment = [
        ("TABLE", "antumbra".to_owned()),
        (
            "AWS_ENDPOINT_URL",
            format!("http://{}", antumbra_testkit::lambda::nowhere()),
        ),
    ];
    let function = Lambda::start(BINARY, &environment);
    let told = function.invoke(EVENT).unwrap_err();
    assert!(told.contains("SweepError"), "{told}");
}

#[test]
fn a_wrong_environment_refuses_to_start() {
    let environment = [("SHARDS", "many".to_owned())];
    assert!(!Lambda::start(BINARY, &environment).ends_well());
}
