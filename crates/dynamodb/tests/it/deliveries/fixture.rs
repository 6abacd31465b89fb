//! A table with clients, links and deliveries, and the steps of an attempt.

use antumbra_dynamodb::{DynamoDbClients, DynamoDbDeliveries};
use antumbra_service::clients::{ClientId, LinkStore as _, Mode};
use antumbra_service::deliveries::{
    Attempt, Claim, DUE_SHARDS, Delivery, DeliveryContext, DeliveryId, DeliveryMessage,
    DeliveryStore as _, DueIndex as _, DueTask, EventType, History as _, NewDeliveries as _, Saved,
    SensorRef, Status, Transition, Wait,
};
use antumbra_service::sensors::{Generation, SensorId};
use antumbra_shadow::Timestamp;
use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::value::RawValue;

use crate::clients::at;
use crate::store::{Store, clients, text};

pub(super) struct DeliveryFixture {
    pub(super) base: Store<DynamoDbClients>,
    pub(super) deliveries: DynamoDbDeliveries,
}

impl DeliveryFixture {
    pub(super) async fn fresh() -> DeliveryFixture {
        let base = clients().await;
        DeliveryFixture {
            deliveries: DynamoDbDeliveries::new(base.client.clone(), &base.table),
            base,
        }
    }

    /// A client linked to a sensor that has this many changes and contacts.
    pub(super) async fn linked(&self, client: &str, sensor: &str, changes: u64, contacts: u64) {
        let client = self.base.client(client, Mode::Latest).await;
        let sensor = self.base.sensor(sensor).await;
        self.base.link(&client.id, &sensor, at(1)).await.unwrap();
        let put = self.base.client.put_item().table_name(&self.base.table);
        let put = put.item("PK", text(&format!("SENSOR#{sensor}")));
        let put = put.item("SK", text("STATE"));
        let put = put.item("generation", text("g-1"));
        let put = put.item("changes", AttributeValue::N(changes.to_string()));
        let put = put.item("contacts", AttributeValue::N(contacts.to_string()));
        put.send().await.unwrap();
        self.base.endpoint.take_calls();
    }

    pub(super) async fn add(&self, sequence: u64) -> Delivery {
        let new = delivery("watch", "door-7", 100, sequence);
        self.deliveries.add(&new, at(100)).await.unwrap();
        new
    }

    pub(super) async fn status(&self, delivery: &Delivery) -> (Status, usize) {
        let record = self.deliveries.get(&delivery.id).await.unwrap().unwrap();
        (record.status, record.attempts.len())
    }

    pub(super) async fn context(&self, delivery: &Delivery) -> (DeliveryContext, DeliveryMessage) {
        let message = match self.deliveries.get(&delivery.id).await.unwrap() {
            Some(record) => record.message(),
            None => DeliveryMessage::first(delivery),
        };
        let context = self.deliveries.context(&message).await.unwrap();
        (context, message)
    }

    pub(super) async fn claim(
        &self,
        context: &DeliveryContext,
        message: &DeliveryMessage,
        token: &str,
    ) -> bool {
        let record = context.record.as_ref().unwrap();
        let claim = Claim {
            record,
            message,
            attempt: record.progress.begun + 1,
            token,
            until: at(130),
            interrupted: None,
            now: at(100),
        };
        self.deliveries.claim(&claim).await.unwrap()
    }

    pub(super) async fn save(
        &self,
        context: &DeliveryContext,
        message: &DeliveryMessage,
        claim: Option<(&str, Attempt)>,
        status: Status,
        wait: Option<Wait>,
    ) -> Saved {
        let transition = Transition {
            context,
            record: context.record.as_ref().unwrap(),
            message,
            claim: claim.as_ref().map(|(token, _)| *token),
            status,
            attempts: claim.iter().map(|(_, attempt)| attempt.clone()).collect(),
            wait,
            in_order: true,
            now: at(101),
        };
        self.deliveries.save(&transition).await.unwrap()
    }

    /// Lets a delivery wait without an attempt.
    pub(super) async fn wait(
        &self,
        context: &DeliveryContext,
        message: &DeliveryMessage,
        wait: Wait,
    ) -> Saved {
        let status = match wait {
            Wait::Held => Status::Held,
            _ => Status::Pending,
        };
        self.save(context, message, None, status, Some(wait)).await
    }

    /// One attempt with its result.
    pub(super) async fn attempt(
        &self,
        delivery: &Delivery,
        status: Status,
        wait: Option<Wait>,
    ) -> Saved {
        let (context, message) = self.context(delivery).await;
        assert!(self.claim(&context, &message, "token").await);
        let number = context.record.as_ref().unwrap().progress.begun + 1;
        let made = attempt(message.round, number, 500);
        self.save(&context, &message, Some(("token", made)), status, wait)
            .await
    }

    /// The tasks of the due index at a time.
    pub(super) async fn due(&self, now: Timestamp) -> Vec<DueTask> {
        let mut tasks = Vec::new();
        for shard in 0..DUE_SHARDS {
            let entries = self.deliveries.due(shard, now, 100).await.unwrap();
            tasks.extend(entries.into_iter().map(|entry| entry.task));
        }
        tasks
    }
}

pub(crate) fn delivery(client: &str, sensor: &str, time: i128, sequence: u64) -> Delivery {
    let client = ClientId::new(client).unwrap();
    Delivery {
        id: DeliveryId::new(&client, at(time), sequence, sensor),
        event_type: EventType::StateChanged,
        sequence,
        number: 3,
        occurred_at: at(time),
        sensor: Some(SensorRef {
            id: SensorId::new(sensor).unwrap(),
            address: "Poznań".to_owned(),
            generation: Generation::new("g-1").unwrap(),
        }),
        data: RawValue::from_string(r#"{"current":1.50}"#.to_owned()).unwrap(),
    }
}

pub(super) fn attempt(round: u32, number: u32, status: u16) -> Attempt {
    Attempt {
        at: at(i128::from(number)),
        round,
        number,
        status: Some(status),
        latency_ms: 12,
        error: None,
    }
}
