//! The function as Lambda runs it: a process that polls the runtime API and answers there.
#![allow(clippy::unwrap_used)]

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use antumbra_dynamodb::{DynamoDbClients, DynamoDbDeliveries, MAIN, Table};
use antumbra_publish::webhook::Guard;
use antumbra_service::clients::{ClientId, Clients, Mode, NewClient};
use antumbra_service::clock::{Clock as _, SystemClock};
use antumbra_service::deliveries::{
    Delivery, DeliveryId, DeliveryRecord, History as _, Kind, Status, encode,
};
use antumbra_testkit::dynamodb::{Endpoint, address, client, table_name};
use antumbra_testkit::lambda::{Lambda, Request, nowhere, serve};
use serde_json::{Value, json};

const BINARY: &str = env!("CARGO_BIN_EXE_antumbra-webhook-deliver");
const ALLOW: &str = "http://127.0.0.0/8";

type Asked = Arc<Mutex<Vec<Request>>>;

/// A server that says yes to everything, and what it was asked.
fn server() -> (SocketAddr, Asked) {
    let asked = Asked::default();
    let asking = Arc::clone(&asked);
    let address = serve(move |request| {
        asking.lock().unwrap().push(request.clone());
        let json = "content-type: application/x-amz-json-1.0\r\n";
        (json.to_owned(), "{}".to_owned())
    });
    (address, asked)
}

fn event(delivery: &Delivery, receives: u32) -> String {
    json!({"Records": [{
        "messageId": "m-1",
        "receiptHandle": "r-1",
        "body": encode(delivery),
        "attributes": {
            "SentTimestamp": "1564669332364",
            "ApproximateReceiveCount": receives.to_string(),
        },
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:us-east-1:000000000000:deliveries",
    }]})
    .to_string()
}

fn environment(table: &str, dynamodb: &str, sqs: SocketAddr) -> Vec<(&'static str, String)> {
    vec![
        ("TABLE", table.to_owned()),
        ("DELIVERIES_QUEUE_URL", format!("http://{sqs}/0/deliveries")),
        (
            "DELIVERIES_FIFO_QUEUE_URL",
            format!("http://{sqs}/0/deliveries.fifo"),
        ),
        ("WEBHOOK_ALLOW", ALLOW.to_owned()),
        ("RETRY_CURVE", "logarithmic".to_owned()),
        ("RETRY_FIRST_SECONDS", "7".to_owned()),
        ("AWS_ENDPOINT_URL_DYNAMODB", dynamodb.to_owned()),
        ("AWS_ENDPOINT_URL_SQS", format!("http://{sqs}")),
    ]
}

/// A table with a client at this address, and a delivery to it.
struct Ground {
    endpoint: Endpoint,
    table: String,
    deliveries: DynamoDbDeliveries,
    delivery: Delivery,
}

impl Ground {
    async fn start(at: SocketAddr) -> Ground {
        let endpoint = Endpoint::start(address()).await;
        let database = client(&endpoint);
        let table = table_name();
        let main = Table {
            name: &table,
            ..MAIN
        };
        main.ensure(&database).await.unwrap();
        let store = DynamoDbClients::new(database.clone(), &table);
        let clients = Clients::new(
            store,
            Guard::new(ALLOW.parse().unwrap()),
            Arc::new(SystemClock),
        );
        let new = NewClient {
            id: Some(ClientId::new("watch").unwrap()),
            name: "Watch".to_owned(),
            url: format!("http://{at}/hook"),
            mode: Mode::Latest,
            requested: None,
        };
        let made = clients.create(new).await.unwrap().client;
        let now = SystemClock.now();
        Ground {
            endpoint,
            deliveries: DynamoDbDeliveries::new(database, &table),
            table,
            delivery: Delivery {
                id: DeliveryId::new(&made.id, now, 1, "test"),
                kind: Kind::ClientTest,
                sequence: 0,
                number: 0,
                occurred_at: now,
                sensor: None,
                data: serde_json::from_str("{}").unwrap(),
                round: 0,
                released: false,
            },
        }
    }

    async fn record(&self) -> DeliveryRecord {
        let found = self.deliveries.get(&self.delivery.id).await;
        found.unwrap().unwrap()
    }
}

#[test]
fn a_delivery_goes_in_and_a_signed_request_goes_out() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (hooks, posted) = server();
    let (sqs, _) = server();
    let ground = runtime.block_on(Ground::start(hooks));
    let environment = environment(&ground.table, &ground.endpoint.url(), sqs);
    let function = Lambda::start(BINARY, &environment);
    let event = event(&ground.delivery, 1);
    // A message that is handed over twice is sent once.
    for _ in 0..2 {
        let answer = function.invoke(&event).unwrap();
        assert_eq!(answer, r#"{"batchItemFailures":[]}"#);
    }
    let posted = posted.lock().unwrap();
    assert_eq!(posted.len(), 1);
    assert_eq!(posted[0].first_line, "POST /hook HTTP/1.1");
    let body: Value = serde_json::from_str(&posted[0].body).unwrap();
    assert_eq!(body["id"], ground.delivery.id.to_string());
    let record = runtime.block_on(ground.record());
    assert_eq!(
        (record.status, record.attempts.len()),
        (Status::Delivered, 1)
    );
    let refused = function.invoke("[]").unwrap_err();
    assert!(refused.contains("EventError"), "{refused}");
}

#[test]
fn what_fails_is_handed_over_again_when_the_rules_say() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (sqs, asked) = server();
    let ground = runtime.block_on(Ground::start(nowhere()));
    let environment = environment(&ground.table, &ground.endpoint.url(), sqs);
    let function = Lambda::start(BINARY, &environment);
    let answer = function.invoke(&event(&ground.delivery, 1)).unwrap();
    let failed = r#"{"batchItemFailures":[{"itemIdentifier":"m-1"}]}"#;
    assert_eq!(answer, failed);
    let record = runtime.block_on(ground.record());
    assert_eq!(record.status, Status::Failed);
    // Its turns are over: nothing is sent, and the queue takes it away.
    let answer = function.invoke(&event(&ground.delivery, 11)).unwrap();
    assert_eq!(answer, failed);
    let record = runtime.block_on(ground.record());
    assert_eq!(record.status, Status::Dead);
    let asked = asked.lock().unwrap();
    let asked: Vec<(&str, Value)> = asked
        .iter()
        .map(|request| {
            let body: Value = serde_json::from_str(&request.body).unwrap();
            (request.target.as_str(), body["VisibilityTimeout"].clone())
        })
        .collect();
    let change = "AmazonSQS.ChangeMessageVisibility";
    assert_eq!(asked, [(change, json!(7)), (change, json!(0))]);
}

#[test]
fn a_wrong_environment_refuses_to_start() {
    let whole = environment("t", "http://127.0.0.1:1", nowhere());
    for missing in 0..3 {
        let mut wrong = whole.clone();
        wrong.remove(missing);
        assert!(!Lambda::start(BINARY, &wrong).ends_well(), "{wrong:?}");
    }
    for (name, value) in [
        ("WEBHOOK_ALLOW", "http://"),
        ("RETRY_CURVE", "steep"),
        ("DELIVERY_TURNS", "many"),
        ("RETENTION_DAYS", "-1"),
    ] {
        let mut wrong = whole.clone();
        wrong.retain(|(other, _)| *other != name);
        wrong.push((name, value.to_owned()));
        assert!(!Lambda::start(BINARY, &wrong).ends_well(), "{name}={value}");
    }
}
