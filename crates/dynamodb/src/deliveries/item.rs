//! Items of deliveries.

use antumbra_service::clients::ClientId;
use antumbra_service::deliveries::{
    Attempt, Delivery, DeliveryId, DeliveryRecord, Progress, SensorRef, Status, due_shard,
};
use antumbra_service::sensors::reading_time::milliseconds;
use antumbra_service::sensors::{Generation, SensorId};
use antumbra_service::store::StoreError;
use antumbra_shadow::Timestamp;
use antumbra_wire::items::{ItemKind, index_keys};
use aws_sdk_dynamodb::types::AttributeValue;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::table::{Item, Key};
use crate::value::{EpochMilliseconds, TextTime, corrupt, from_item, to_item};

/// Round in which a delivery was held, number of its attempts by then, and time. They identify an entry of the list of
/// held deliveries.
pub(super) const ROUND: &str = "round";
pub(super) const BEGUN: &str = "begun";
pub(super) const HELD_AT: &str = "heldAt";
/// Number of deferred deliveries in a chain.
pub(super) const DEFERRED: &str = "deferred";
/// Number of changes of a chain.
pub(super) const CHAIN_VERSION: &str = "version";
/// End of the key of a task that releases the held deliveries of a client.
pub(super) const RELEASE: &str = "release";

pub(super) fn key(id: &DeliveryId) -> Key {
    Key::new(ItemKind::Delivery, id.client().as_str(), &id.order())
}

pub(super) fn held_key(client: &ClientId, order: &str) -> Key {
    Key::new(ItemKind::HeldDelivery, client.as_str(), order)
}

pub(super) fn deferred_key(id: &DeliveryId, sensor: &SensorId) -> Key {
    let sort = format!("{sensor}#{}", id.order());
    Key::new(ItemKind::DeferredDelivery, id.client().as_str(), &sort)
}

pub(super) fn chain_key(client: &ClientId, sensor: &SensorId) -> Key {
    Key::new(ItemKind::DeliveryChain, client.as_str(), sensor.as_str())
}

/// Times have 13 digits until the year 2286.
pub(super) fn due_key(id: &DeliveryId, at: Timestamp) -> Key {
    let sort = format!("{:013}#{}#{}", milliseconds(at), id.client(), id.order());
    let shard = id.due_shard().to_string();
    Key::new(ItemKind::DueDelivery, &shard, &sort)
}

pub(crate) fn release_key(client: &ClientId, at: Timestamp) -> Key {
    let sort = format!("{:013}#{client}#{RELEASE}", milliseconds(at));
    let shard = due_shard(client.as_str()).to_string();
    Key::new(ItemKind::DueDelivery, &shard, &sort)
}

/// Immutable attributes of a delivery.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct DeliveryItem {
    delivery_id: String,
    r#type: String,
    sequence: u64,
    number: u64,
    occurred_at: TextTime,
    data: String,
    #[serde(flatten)]
    sensor: Option<SensorItem>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SensorItem {
    sensor_id: String,
    address: String,
    generation: String,
    list_key: String,
    list_sort: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ProgressItem {
    status: Status,
    round: u32,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    manual: bool,
    begun: u32,
    queued: u32,
    claimed_until: Option<EpochMilliseconds>,
    not_before: Option<EpochMilliseconds>,
    waiting: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    chained: bool,
    delivered_round: Option<u32>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    attempts: Vec<AttemptItem>,
    updated: TextTime,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AttemptItem {
    at: TextTime,
    #[serde(default)]
    round: u32,
    number: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    latency_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

pub(super) fn new_item(delivery: &Delivery, now: Timestamp) -> Result<Item, StoreError> {
    let mut item = to_item(&DeliveryItem {
        delivery_id: delivery.id.to_string(),
        r#type: delivery.event_type.as_str().to_owned(),
        sequence: delivery.sequence,
        number: delivery.number,
        occurred_at: TextTime(delivery.occurred_at),
        data: delivery.data.get().to_owned(),
        sensor: delivery.sensor.as_ref().map(|sensor| SensorItem {
            sensor_id: sensor.id.to_string(),
            address: sensor.address.clone(),
            generation: sensor.generation.to_string(),
            list_key: index_keys::deliveries(sensor.id.as_str()),
            list_sort: format!("{}_{}", delivery.id.order(), delivery.id.client()),
        }),
    })?;
    item.extend(to_item(&ProgressItem {
        status: Status::Pending,
        round: 0,
        manual: false,
        begun: 0,
        queued: 0,
        claimed_until: None,
        not_before: None,
        waiting: None,
        chained: false,
        delivered_round: None,
        attempts: Vec::new(),
        updated: TextTime(now),
    })?);
    Ok(item)
}

pub(super) fn encode_attempts<'a>(
    attempts: impl Iterator<Item = &'a Attempt>,
) -> Result<AttributeValue, StoreError> {
    let encode = |attempt: &Attempt| {
        let item = to_item(&AttemptItem {
            at: TextTime(attempt.at),
            round: attempt.round,
            number: attempt.number,
            status: attempt.status,
            latency_ms: attempt.latency_ms,
            error: attempt.error.clone(),
        })?;
        Ok(AttributeValue::M(item))
    };
    let attempts: Result<Vec<_>, StoreError> = attempts.map(encode).collect();
    Ok(AttributeValue::L(attempts?))
}

pub(super) fn decode(item: Item) -> Result<DeliveryRecord, StoreError> {
    let progress: ProgressItem = from_item("delivery", item.clone())?;
    let item: DeliveryItem = from_item("delivery", item)?;
    let invalid = |name: &'static str| move || corrupt(name, "invalid");
    let sensor = match item.sensor {
        None => None,
        Some(sensor) => Some(SensorRef {
            id: SensorId::new(sensor.sensor_id).map_err(|_| invalid("sensorId")())?,
            address: sensor.address,
            generation: Generation::new(sensor.generation).map_err(|_| invalid("generation")())?,
        }),
    };
    let data = RawValue::from_string(item.data);
    let waiting = progress.waiting.map(|word| word.parse()).transpose();
    let attempts = progress.attempts.into_iter().map(|item| Attempt {
        at: item.at.0,
        round: item.round,
        number: item.number,
        status: item.status,
        latency_ms: item.latency_ms,
        error: item.error,
    });
    Ok(DeliveryRecord {
        delivery: Delivery {
            id: item
                .delivery_id
                .parse()
                .map_err(|_| invalid("deliveryId")())?,
            event_type: item.r#type.parse().map_err(|_| invalid("type")())?,
            sequence: item.sequence,
            number: item.number,
            occurred_at: item.occurred_at.0,
            sensor,
            data: data.map_err(|_| invalid("data")())?,
        },
        status: progress.status,
        progress: Progress {
            round: progress.round,
            manual: progress.manual,
            begun: progress.begun,
            claimed_until: progress.claimed_until.map(|time| time.0),
            not_before: progress.not_before.map(|time| time.0),
            waiting: waiting.map_err(|_: String| invalid("waiting")())?,
            chained: progress.chained,
            queued: progress.queued,
            delivered_round: progress.delivered_round,
        },
        attempts: attempts.collect(),
        updated: progress.updated.0,
    })
}
