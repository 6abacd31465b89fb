//! Items of deliveries.

use antumbra_service::deliveries::{
    Attempt, Delivery, DeliveryId, DeliveryRecord, SensorRef, Status,
};
use antumbra_service::sensors::SensorId;
use antumbra_service::store::StoreError;
use antumbra_shadow::Timestamp;
use antumbra_wire::items::{ItemKind, index_keys};
use aws_sdk_dynamodb::types::AttributeValue;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::table::{Item, Key};
use crate::value::{TextTime, corrupt, from_item, number, seconds, text, time, to_item};

pub(super) const ROUND: &str = "round";
pub(super) const DELIVERED_ROUND: &str = "deliveredRound";
pub(super) const STATUS: &str = "status";
pub(super) const ATTEMPTS: &str = "attempts";
const UPDATED: &str = "updated";
const TTL: &str = "ttl";

/// The key of a delivery.
pub(super) fn key(id: &DeliveryId) -> Key {
    Key::new(ItemKind::Delivery, id.client().as_str(), &id.order())
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
    list_key: String,
    list_sort: String,
}

/// Result of a delivery so far.
#[derive(Debug, Deserialize)]
struct ResultItem {
    round: u32,
    status: String,
    updated: TextTime,
}

#[derive(Debug, Deserialize)]
struct AttemptsItem {
    #[serde(default)]
    attempts: Vec<AttemptItem>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AttemptItem {
    at: TextTime,
    #[serde(default)]
    round: u32,
    number: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    latency_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// The attributes that every write of a delivery sets.
pub(super) fn attributes(
    delivery: &Delivery,
    status: Status,
    now: Timestamp,
    expires_at: Timestamp,
) -> Result<Item, StoreError> {
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
            list_key: index_keys::deliveries(sensor.id.as_str()),
            list_sort: format!("{}_{}", delivery.id.order(), delivery.id.client()),
        }),
    })?;
    item.insert(STATUS.to_owned(), text(status.as_str()));
    item.insert(ROUND.to_owned(), number(delivery.round));
    item.extend(times(now, expires_at));
    Ok(item)
}

/// The time of the write and the end of the item.
pub(super) fn times(now: Timestamp, expires_at: Timestamp) -> Item {
    Item::from([
        (UPDATED.to_owned(), time(now)),
        (TTL.to_owned(), number(seconds(expires_at))),
    ])
}

/// An attempt as an element of the list of attempts.
pub(super) fn encode_attempt(attempt: &Attempt) -> Result<AttributeValue, StoreError> {
    let item = to_item(&AttemptItem {
        at: TextTime(attempt.at),
        round: attempt.round,
        number: attempt.number,
        status: attempt.status,
        latency_ms: attempt.latency_ms,
        error: attempt.error.clone(),
    })?;
    Ok(AttributeValue::M(item))
}

fn decode_attempts(attempts: Vec<AttemptItem>) -> Vec<Attempt> {
    let decode = |item: AttemptItem| Attempt {
        at: item.at.0,
        round: item.round,
        number: item.number,
        status: item.status,
        latency_ms: item.latency_ms,
        error: item.error,
    };
    attempts.into_iter().map(decode).collect()
}

/// Decodes a delivery with its attempts.
pub(super) fn decode(item: Item) -> Result<DeliveryRecord, StoreError> {
    let result: ResultItem = from_item("delivery", item.clone())?;
    let attempts: AttemptsItem = from_item("delivery", item.clone())?;
    let item: DeliveryItem = from_item("delivery", item)?;
    let sensor = match item.sensor {
        None => None,
        Some(sensor) => Some(SensorRef {
            id: SensorId::new(sensor.sensor_id.as_str())
                .map_err(|_| corrupt("sensorId", "not a sensor's id"))?,
            address: sensor.address,
        }),
    };
    let invalid = |name: &'static str| move |_| corrupt(name, "invalid");
    let data = RawValue::from_string(item.data);
    Ok(DeliveryRecord {
        delivery: Delivery {
            id: item
                .delivery_id
                .parse()
                .map_err(|_| corrupt("deliveryId", "invalid"))?,
            event_type: item.r#type.parse().map_err(invalid("type"))?,
            sequence: item.sequence,
            number: item.number,
            occurred_at: item.occurred_at.0,
            sensor,
            data: data.map_err(|_| corrupt("data", "not JSON"))?,
            round: result.round,
            released: false,
        },
        status: result.status.parse().map_err(invalid(STATUS))?,
        attempts: decode_attempts(attempts.attempts),
        updated: result.updated.0,
    })
}

/// The stored list of attempts.
pub(super) fn stored_attempts(item: &Item) -> &[AttributeValue] {
    item.get(ATTEMPTS)
        .and_then(|list| list.as_l().ok())
        .map_or(&[], Vec::as_slice)
}

/// The last attempt of a round that is recorded; 0 if there is none.
pub(super) fn last_attempt(item: &Item, round: u32) -> Result<u32, StoreError> {
    let item: AttemptsItem = from_item("delivery", item.clone())?;
    let of_round = item
        .attempts
        .iter()
        .filter(|attempt| attempt.round == round);
    Ok(of_round.map(|item| item.number).max().unwrap_or(0))
}
