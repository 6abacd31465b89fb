//! A stack with sensors and clients.

use std::sync::Arc;
use std::time::Duration;

use antumbra_dynamodb::{DynamoDbClients, DynamoDbDeliveries, DynamoDbSensors, MAIN, SensorConfig};
use antumbra_local::stack::{Options, Webhooks, default_webhook_allow};
use antumbra_publish::SqsChannel;
use antumbra_publish::webhook::Guard;
use antumbra_service::clients::{ClientId, ClientState, Clients, Mode, NewClient, Secret};
use antumbra_service::clock::{Clock as _, SystemClock};
use antumbra_service::deliveries::{
    Delays, Deliveries, DeliveryRecord, HistoryQuery, Policy, Queues, Status, Subject,
};
use antumbra_service::sensors::{SensorId, SensorStore as _, Signal, StateStore as _, Value};

use super::endpoint::{Endpoints, Reply, Seen};
use crate::support::{self, registrations, sensor};

pub(super) const REGISTRATION: &str =
    include_str!("../../../../../registrations/sensor-clients.json");

pub(super) struct Home {
    pub(super) services: support::Home,
    pub(super) endpoints: Endpoints,
    pub(super) clients: Clients<DynamoDbClients, Guard>,
    pub(super) redeliveries: Deliveries<DynamoDbClients, DynamoDbDeliveries>,
    pub(super) sensors: DynamoDbSensors,
}

/// Immediate retries, and circuits that never open.
pub(super) fn immediate() -> Policy {
    Policy {
        delays: Delays {
            first: Duration::ZERO,
            ..Delays::default()
        },
        open_after: 1000,
        open_first: Duration::ZERO,
        ..Policy::default()
    }
}

impl Home {
    /// A stack with a client linked to a sensor.
    pub(super) async fn linked(mode: Mode, policy: Policy) -> (Home, ClientId, SensorId) {
        let home = Home::start(policy).await;
        let door = home.sensor("door-7").await;
        let (client, _) = home.client("watch", mode).await;
        home.clients.link(&client, &door).await.unwrap();
        (home, client, door)
    }

    pub(super) async fn start(policy: Policy) -> Home {
        let webhooks = Webhooks {
            policy: Some(policy),
            timeout: Duration::from_millis(500),
            concurrency: 4,
        };
        let allow = default_webhook_allow();
        let services = support::Home::with_api(Options {
            registrations: registrations([REGISTRATION]),
            webhooks,
            ..Options::default()
        })
        .await;
        let database = services.database();
        let url = |name: &str| services.stack.queue_url(name);
        let queue = |name: &str| Arc::new(SqsChannel::new(&services.sqs, &url(name)));
        let queues = Queues {
            ordered: queue("antumbra-deliveries.fifo"),
            unordered: queue("antumbra-deliveries"),
        };
        let store = DynamoDbClients::connect(&database, MAIN.name);
        Home {
            endpoints: Endpoints::start().await,
            clients: Clients::new(store.clone(), Guard::new(allow), Arc::new(SystemClock)),
            redeliveries: Deliveries::new(
                store,
                DynamoDbDeliveries::connect(&database, MAIN.name),
                queues,
                Arc::new(SystemClock),
            ),
            sensors: DynamoDbSensors::connect(&database, SensorConfig::new(MAIN.name)),
            services,
        }
    }

    pub(super) async fn stop(self) {
        self.services.stop().await;
    }

    /// Creates a client whose endpoint path is its id.
    pub(super) async fn client(&self, id: &str, mode: Mode) -> (ClientId, Secret) {
        let created = self
            .clients
            .create(NewClient {
                id: Some(ClientId::new(id).unwrap()),
                name: format!("The {id}"),
                url: self.endpoints.url(id),
                mode,
                requested: None,
            })
            .await
            .unwrap();
        (created.client.id, created.secret)
    }

    /// Registers a sensor and sends the value 0.
    pub(super) async fn sensor(&self, id: &str) -> SensorId {
        let registered = sensor(id, SystemClock.now());
        self.sensors.register(&registered).await.unwrap();
        let id = registered.sensor.id;
        self.signal(&id, 0).await;
        id
    }

    pub(super) async fn signal(&self, id: &SensorId, value: i64) {
        let message = format!("m{}", fastrand::u64(..));
        let now = SystemClock.now();
        let value = Value::whole(value);
        let signal = Signal::new(id.clone(), value, None, None, now, &message).unwrap();
        self.sensors.record(&signal).await.unwrap().unwrap();
        // The queue's clock has milliseconds; the next signal must be newer.
        tokio::time::sleep(Duration::from_millis(2)).await;
    }

    pub(super) async fn history(&self, client: &ClientId) -> Vec<DeliveryRecord> {
        let query = HistoryQuery {
            oldest_first: true,
            ..HistoryQuery::of(Subject::Client(client.clone()))
        };
        self.redeliveries.list(&query, None).await.unwrap().rows
    }

    /// Waits until the deliveries of a client have these statuses.
    pub(super) async fn wait_for_statuses(
        &self,
        client: &ClientId,
        expected: &[Status],
    ) -> Vec<DeliveryRecord> {
        let mut last = Vec::new();
        let waiting = async {
            loop {
                let records = self.history(client).await;
                last = records.iter().map(|record| record.status).collect();
                if last == expected {
                    return records;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        match tokio::time::timeout(Duration::from_secs(30), waiting).await {
            Ok(records) => records,
            Err(_) => panic!("{last:?}, not {expected:?}"),
        }
    }

    /// Sets the replies to the next requests to the endpoint of `watch`.
    pub(super) fn reply(&self, replies: &[Reply]) {
        self.endpoints.next("watch", replies);
    }

    /// Waits for a number of requests to the endpoint of `watch`.
    pub(super) async fn requests(&self, count: usize) -> Vec<Seen> {
        self.endpoints.wait("watch", count).await
    }

    /// Returns how many messages of a queue are visible, in flight and delayed.
    pub(super) async fn queue_counts(&self, name: &str) -> [u32; 3] {
        let url = self.services.stack.queue_url(name);
        let request = self.services.sqs.get_queue_attributes().queue_url(url);
        let all = request.attribute_names("All".into()).send().await.unwrap();
        let attributes = all.attributes.unwrap_or_default();
        let count = |name: &str| attributes[&name.into()].parse().unwrap();
        [
            count("ApproximateNumberOfMessages"),
            count("ApproximateNumberOfMessagesNotVisible"),
            count("ApproximateNumberOfMessagesDelayed"),
        ]
    }

    pub(super) async fn redeliver(&self, record: &DeliveryRecord) {
        self.redeliveries
            .redeliver(&record.delivery.id)
            .await
            .unwrap();
    }

    /// Asserts that a client is disabled for a reason that contains this text.
    pub(super) async fn assert_disabled(&self, client: &ClientId, text: &str) {
        let state = self.clients.get(client).await.unwrap().state;
        let disabled =
            matches!(&state, ClientState::Disabled { reason, .. } if reason.contains(text));
        assert!(disabled, "{state:?}");
    }
}

/// Returns the event's number in each request.
pub(super) fn sequences(seen: &[Seen]) -> Vec<u64> {
    let sequence = |seen: &Seen| seen.body["sequence"].as_u64().unwrap();
    seen.iter().map(sequence).collect()
}
