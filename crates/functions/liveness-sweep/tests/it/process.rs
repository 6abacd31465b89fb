//! The binary as Lambda runs it, with the event of a schedule.

use std::time::{SystemTime, UNIX_EPOCH};

use antumbra_dynamodb::{DynamoDbClients, DynamoDbDeliveries, MAIN};
use antumbra_service::clients::{
    Circuit, Client, ClientId, ClientState, ClientStore as _, Mode, RequestKey, Secret,
};
use antumbra_service::clock::{Clock as _, SystemClock};
use antumbra_service::deliveries::{
    DUE_SHARDS, Delivery, DeliveryId, EventType, NewDeliveries as _,
};
use antumbra_service::store::Version;
use antumbra_testkit::dynamodb::TestTable;
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

#[tokio::test(flavor = "multi_thread")]
async fn due_deliveries_are_queued_in_the_group_of_their_client() {
    let (table, aws) = (TestTable::create(MAIN).await, AwsServer::start());
    let (id, now) = (ClientId::new("watch").unwrap(), SystemClock.now());
    let client = Client {
        id: id.clone(),
        name: "Watch".to_owned(),
        url: "https://watch.example/".to_owned(),
        mode: Mode::Latest,
        state: ClientState::Enabled,
        circuit: Circuit::default(),
        version: Version(1),
        created: now,
        updated: now,
    };
    let clients = DynamoDbClients::new(table.client.clone(), &table.name);
    let (secret, request) = (Secret::random(), RequestKey::once(now));
    let created = clients.create(&client, &secret, &request).await;
    created.unwrap();
    let delivery = Delivery {
        id: DeliveryId::new(&id, now, 1, "test"),
        event_type: EventType::ClientTest,
        sequence: 0,
        number: 0,
        occurred_at: now,
        sensor: None,
        data: serde_json::from_str("{}").unwrap(),
    };
    let deliveries = DynamoDbDeliveries::new(table.client.clone(), &table.name);
    deliveries.add_due(&delivery, now).await.unwrap();
    let environment = [
        ("TABLE", table.name.clone()),
        ("DELIVERIES_QUEUE_URL", aws.queue_url("antumbra-deliveries")),
        (
            "DELIVERIES_FIFO_QUEUE_URL",
            aws.queue_url("antumbra-deliveries.fifo"),
        ),
        ("AWS_ENDPOINT_URL_DYNAMODB", table.endpoint.url()),
        ("AWS_ENDPOINT_URL_SQS", aws.url()),
    ];
    Lambda::start(BINARY, &environment).invoke(EVENT).unwrap();
    let sent = aws.sent();
    assert_eq!(sent.len(), 1, "{sent:?}");
    assert_eq!(sent[0]["MessageGroupId"], "watch");
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
