//! The function as Lambda runs it: a process that polls the runtime API and answers there.
#![allow(clippy::unwrap_used)]

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use antumbra_dynamodb::{DynamoDbInbox, MESSAGES, Table};
use antumbra_service::inbox::{MessageIndex, Range, Source};
use antumbra_testkit::dynamodb::{Endpoint, address, client, table_name};
use antumbra_testkit::lambda::{Lambda, nowhere, serve};
use serde_json::{Value, json};

const BINARY: &str = env!("CARGO_BIN_EXE_antumbra-message-ingest");

fn event(bodies: &[&str]) -> String {
    let record = |(number, body): (usize, &&str)| {
        json!({
            "messageId": format!("m-{number}"),
            "body": body,
            "attributes": {"SentTimestamp": "1564669332364", "ApproximateReceiveCount": "1"},
            "eventSource": "aws:sqs",
            "eventSourceARN": "arn:aws:sqs:us-east-1:000000000000:antumbra-inbound",
        })
    };
    let records: Vec<Value> = bodies.iter().enumerate().map(record).collect();
    json!({ "Records": records }).to_string()
}

/// An SQS that takes every message, and what it took.
fn sqs() -> (SocketAddr, Arc<Mutex<Vec<Value>>>) {
    let taken: Arc<Mutex<Vec<Value>>> = Arc::default();
    let taking = Arc::clone(&taken);
    let address = serve(move |request| {
        assert_eq!(request.target, "AmazonSQS.SendMessageBatch");
        let batch: Value = serde_json::from_str(&request.body).unwrap();
        let entries = batch["Entries"].as_array().unwrap();
        let sent =
            |entry: &Value| json!({"Id": entry["Id"], "MessageId": "q", "MD5OfMessageBody": "x"});
        let answer =
            json!({"Successful": entries.iter().map(sent).collect::<Vec<_>>(), "Failed": []});
        taking.lock().unwrap().extend(entries.iter().cloned());
        (
            "content-type: application/x-amz-json-1.0\r\n".to_owned(),
            answer.to_string(),
        )
    });
    (address, taken)
}

#[test]
fn messages_go_in_and_are_stored_or_put_away() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (endpoint, inbox, table) = runtime.block_on(async {
        let endpoint = Endpoint::start(address()).await;
        let client = client(&endpoint);
        let name = table_name();
        let table = Table {
            name: &name,
            ..MESSAGES
        };
        table.ensure(&client).await.unwrap();
        (endpoint, DynamoDbInbox::new(client, &name), name)
    });
    let (sqs, taken) = sqs();
    let function = Lambda::start(
        BINARY,
        &[
            ("TABLE", table),
            (
                "QUARANTINE_QUEUE_URL",
                format!("http://{sqs}/000000000000/quarantine"),
            ),
            ("uuidKey", "header.imei".to_owned()),
            ("messageIdKey", "header.at".to_owned()),
            ("MESSAGE_ID_DIGITS", "4".to_owned()),
            ("RETENTION_DAYS", "30".to_owned()),
            ("AWS_ENDPOINT_URL_DYNAMODB", endpoint.url()),
            ("AWS_ENDPOINT_URL_SQS", format!("http://{sqs}")),
        ],
    );
    let event = event(&[
        r#"{"header":{"imei":300234010753370,"at":10}}"#,
        "nonsense",
        r#"{"header":{"imei":300234010753370,"at":9}}"#,
    ]);
    for _ in 0..2 {
        let answer = function.invoke(&event).unwrap();
        assert_eq!(answer, r#"{"batchItemFailures":[]}"#);
    }
    let source = Source::new("300234010753370").unwrap();
    let ids = runtime
        .block_on(inbox.ids(&source, &Range::default(), 10))
        .unwrap();
    let ids: Vec<&str> = ids.iter().map(|id| id.as_str()).collect();
    assert_eq!(ids, ["0009-1564669332364-m-2", "0010-1564669332364-m-0"]);
    let taken = taken.lock().unwrap();
    assert_eq!(taken[0]["MessageBody"], "nonsense");
    assert_eq!(
        taken[0]["MessageAttributes"]["reason"]["StringValue"],
        "NotJson"
    );
    let refused = function.invoke("[]").unwrap_err();
    assert!(refused.contains("EventError"), "{refused}");
}

#[test]
fn a_wrong_environment_refuses_to_start() {
    let queue = ("QUARANTINE_QUEUE_URL", format!("http://{}/q", nowhere()));
    let table = ("TABLE", "messages".to_owned());
    let wrong: [&[(&str, String)]; 4] = [
        &[],
        std::slice::from_ref(&table),
        &[table.clone(), queue.clone(), ("uuidKey", "a..b".to_owned())],
        &[
            table.clone(),
            queue.clone(),
            ("MESSAGE_ID_DIGITS", "many".to_owned()),
        ],
    ];
    for environment in wrong {
        assert!(
            !Lambda::start(BINARY, environment).ends_well(),
            "{environment:?}"
        );
    }
}
