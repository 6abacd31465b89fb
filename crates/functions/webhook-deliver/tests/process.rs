//! The binary as Lambda runs it.
#![allow(clippy::unwrap_used)]

use std::net::SocketAddr;
use std::sync::Arc;

use antumbra_dynamodb::{DynamoDbClients, DynamoDbDeliveries, MAIN};
use antumbra_publish::webhook::Guard;
use antumbra_service::clients::{ClientId, Clients, Mode, NewClient};
use antumbra_service::clock::{Clock as _, SystemClock};
use antumbra_service::deliveries::{
    Delivery, DeliveryId, DeliveryMessage, DeliveryRecord, EventType, History as _,
    NewDeliveries as _, Status,
};
use antumbra_testkit::dynamodb::TestTable;
use antumbra_testkit::lambda::{
    AwsServer, Environment, Lambda, NO_FAILURES, assert_rejects, nowhere,
};
use serde_json::json;

const BINARY: &str = env!("CARGO_BIN_EXE_antumbra-webhook-deliver");
const ALLOW: &str = "http://127.0.0.0/8";

fn event(body: &str, receives: u32) -> String {
    json!({"Records": [{
        "messageId": "m-1",
        "receiptHandle": "r-1",
        "body": body,
        "attributes": {
            "SentTimestamp": "1564669332364",
            "ApproximateReceiveCount": receives.to_string(),
        },
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:us-east-1:000000000000:deliveries",
    }]})
    .to_string()
}

fn environment(table: &str, dynamodb: &str, sqs: SocketAddr) -> Environment {
    vec![
        ("TABLE", table.to_owned()),
        ("DELIVERIES_QUEUE_URL", format!("http://{sqs}/0/deliveries")),
        (
            "DELIVERIES_FIFO_QUEUE_URL",
            format!("http://{sqs}/0/deliveries.fifo"),
        ),
        (
            "DELIVERIES_DEAD_QUEUE_URL",
            format!("http://{sqs}/0/deliveries-dead"),
        ),
        (
            "DELIVERIES_DEAD_FIFO_QUEUE_URL",
            format!("http://{sqs}/0/deliveries-dead.fifo"),
        ),
        ("QUARANTINE_QUEUE_URL", format!("http://{sqs}/0/quarantine")),
        ("WEBHOOK_ALLOW", ALLOW.to_owned()),
        ("RETRY_CURVE", "logarithmic".to_owned()),
        ("RETRY_FIRST_SECONDS", "4".to_owned()),
        ("AWS_ENDPOINT_URL_DYNAMODB", dynamodb.to_owned()),
        ("AWS_ENDPOINT_URL_SQS", format!("http://{sqs}")),
    ]
}

/// A client whose endpoint has this address, and a delivery to it.
struct Fixture {
    table: TestTable,
    deliveries: DynamoDbDeliveries,
    delivery: Delivery,
}

impl Fixture {
    async fn create(endpoint: SocketAddr) -> Fixture {
        let table = TestTable::create(MAIN).await;
        let store = DynamoDbClients::new(table.client.clone(), &table.name);
        let clients = Clients::new(
            store,
            Guard::new(ALLOW.parse().unwrap()),
            Arc::new(SystemClock),
        );
        let new = NewClient {
            id: Some(ClientId::new("watch").unwrap()),
            name: "Watch".to_owned(),
            url: format!("http://{endpoint}/hook"),
            mode: Mode::Latest,
            requested: None,
        };
        let made = clients.create(new).await.unwrap().client;
        let now = SystemClock.now();
        let delivery = Delivery {
            id: DeliveryId::new(&made.id, now, 1, "test"),
            event_type: EventType::ClientTest,
            sequence: 0,
            number: 0,
            occurred_at: now,
            sensor: None,
            data: serde_json::from_str("{}").unwrap(),
        };
        let deliveries = DynamoDbDeliveries::new(table.client.clone(), &table.name);
        deliveries.add(&delivery, now).await.unwrap();
        Fixture {
            deliveries,
            table,
            delivery,
        }
    }

    fn event(&self, receives: u32) -> String {
        event(&DeliveryMessage::first(&self.delivery).encode(), receives)
    }

    fn start(&self, sqs: &AwsServer) -> Lambda {
        let dynamodb = self.table.endpoint.url();
        let environment = environment(&self.table.name, &dynamodb, sqs.address());
        Lambda::start(BINARY, &environment)
    }

    async fn record(&self) -> DeliveryRecord {
        let found = self.deliveries.get(&self.delivery.id).await;
        found.unwrap().unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_is_posted_once() {
    let (endpoint, sqs) = (AwsServer::start(), AwsServer::start());
    let fixture = Fixture::create(endpoint.address()).await;
    let function = fixture.start(&sqs);
    let event = fixture.event(1);
    // SQS may deliver a message twice.
    for _ in 0..2 {
        assert_eq!(function.invoke(&event).unwrap(), NO_FAILURES);
    }
    let posted = endpoint.requests();
    assert_eq!(posted.len(), 1);
    assert_eq!(posted[0].first_line, "POST /hook HTTP/1.1");
    assert_eq!(posted[0].json()["id"], fixture.delivery.id.to_string());
    let record = fixture.record().await;
    assert_eq!(
        (record.status, record.attempts.len()),
        (Status::Delivered, 1)
    );
    let error = function.invoke("[]").unwrap_err();
    assert!(error.contains("EventError"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_attempt_is_retried_as_configured_however_often_it_was_received() {
    let sqs = AwsServer::start();
    let fixture = Fixture::create(nowhere()).await;
    let function = fixture.start(&sqs);
    // Receives of throttled invocations cost no attempt; the second receive comes before the retry is due.
    for receives in [900, 901] {
        let response = function.invoke(&fixture.event(receives)).unwrap();
        assert_eq!(response, NO_FAILURES);
        let record = fixture.record().await;
        assert_eq!((record.status, record.attempts.len()), (Status::Failed, 1));
    }
    // The next attempt has a message of its own, with a delay of up to a fifth more, in whole seconds.
    let sent = sqs.sent();
    assert_eq!(sent.len(), 1, "{sent:?}");
    assert_eq!(sent[0]["MessageGroupId"], "watch");
    let delay = sent[0]["DelaySeconds"].as_u64().unwrap();
    assert!((4..=5).contains(&delay), "{sent:?}");
    let requests = sqs.requests();
    let mut operations = requests.iter().map(|request| request.operation());
    assert!(operations.all(|operation| operation != "ChangeMessageVisibility"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_the_history_does_not_know_is_quarantined() {
    let (endpoint, sqs) = (AwsServer::start(), AwsServer::start());
    let fixture = Fixture::create(endpoint.address()).await;
    let function = fixture.start(&sqs);
    let forged = fixture
        .delivery
        .id
        .to_string()
        .replace("0000000001_", "0000000002_");
    for body in [format!(r#"{{"id":"{forged}"}}"#), "forged".to_owned()] {
        assert_eq!(function.invoke(&event(&body, 1)).unwrap(), NO_FAILURES);
        let requests = sqs.requests();
        let quarantined = requests.last().unwrap();
        assert_eq!(quarantined.operation(), "SendMessageBatch");
        let url = quarantined.json()["QueueUrl"].to_string();
        assert!(url.contains("quarantine"), "{url}");
    }
    assert!(endpoint.requests().is_empty());
}

#[test]
fn an_invalid_environment_is_rejected() {
    let environment = environment("t", "http://127.0.0.1:1", nowhere());
    let changes = [
        ("TABLE", None),
        ("DELIVERIES_QUEUE_URL", None),
        ("DELIVERIES_FIFO_QUEUE_URL", None),
        ("DELIVERIES_DEAD_QUEUE_URL", None),
        ("DELIVERIES_DEAD_FIFO_QUEUE_URL", None),
        ("QUARANTINE_QUEUE_URL", None),
        ("DISABLE_AFTER_HOURS", Some("-1")),
        ("WEBHOOK_ALLOW", Some("http://")),
        ("RETRY_CURVE", Some("steep")),
        ("DELIVERY_MAX_ATTEMPTS", Some("many")),
        ("DELIVERY_RETENTION_DAYS", Some("-1")),
    ];
    assert_rejects(BINARY, &environment, &changes);
}
