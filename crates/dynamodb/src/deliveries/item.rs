//! Deliveries and attempts as items.

use antumbra_service::deliveries::{Attempt, Delivery, DeliveryRecord, SensorRef};
use antumbra_service::store::StoreError;
use antumbra_shadow::Timestamp;
use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::value::RawValue;

use crate::clients::item::{
    SENSOR, instant, n, number, optional_number, optional_text, s, text, time, unreadable,
};
use crate::clients::keys::{Item, deliveries_of};
use crate::tables::LISTED;

pub(super) const ID: &str = "deliveryId";
const KIND: &str = "type";
const SEQUENCE: &str = "sequence";
const NUMBER: &str = "number";
const OCCURRED_AT: &str = "occurredAt";
const ADDRESS: &str = "address";
const DATA: &str = "data";
pub(super) const ROUND: &str = "round";
pub(super) const DELIVERED_ROUND: &str = "deliveredRound";
pub(super) const STATUS: &str = "status";
pub(super) const ATTEMPTS: &str = "attempts";
pub(super) const UPDATED: &str = "updated";
pub(super) const TTL: &str = "ttl";

/// What of a delivery never changes, by name.
pub(super) fn fixed(delivery: &Delivery) -> Vec<(&'static str, AttributeValue)> {
    let mut fixed = vec![
        (ID, s(delivery.id.to_string())),
        (KIND, s(delivery.kind.as_str())),
        (SEQUENCE, n(delivery.sequence)),
        (NUMBER, n(delivery.number)),
        (OCCURRED_AT, time(delivery.occurred_at)),
        (DATA, s(delivery.data.get())),
    ];
    if let Some(sensor) = &delivery.sensor {
        let order = format!("{}_{}", delivery.id.order(), delivery.id.client());
        fixed.extend([
            (SENSOR, s(sensor.id.as_str())),
            (ADDRESS, s(&sensor.address)),
            (LISTED.partition_key, s(deliveries_of(&sensor.id))),
            (LISTED.sort_key.0, s(order)),
        ]);
    }
    fixed
}

/// An attempt as an element of the list.
pub(super) fn attempt(attempt: &Attempt) -> AttributeValue {
    let mut map = Item::from([
        ("at".to_owned(), time(attempt.at)),
        ("round".to_owned(), n(attempt.round)),
        ("turn".to_owned(), n(attempt.turn)),
        ("latencyMs".to_owned(), n(attempt.latency_ms)),
    ]);
    if let Some(status) = attempt.status {
        map.insert("status".to_owned(), n(status));
    }
    if let Some(error) = &attempt.error {
        map.insert("error".to_owned(), s(error));
    }
    AttributeValue::M(map)
}

fn decode_attempt(value: &AttributeValue) -> Result<Attempt, StoreError> {
    let map = value.as_m().map_err(|_| unreadable(ATTEMPTS))?;
    Ok(Attempt {
        at: instant(map, "at")?,
        round: optional_number(map, "round")?.unwrap_or(0),
        turn: number(map, "turn")?,
        status: optional_number(map, "status")?,
        latency_ms: number(map, "latencyMs")?,
        error: optional_text(map, "error").map(str::to_owned),
    })
}

/// The record in an item.
pub(super) fn decode(item: &Item) -> Result<DeliveryRecord, StoreError> {
    let sensor = match optional_text(item, SENSOR) {
        None => None,
        Some(_) => Some(SensorRef {
            id: crate::clients::item::sensor_id(item)?,
            address: text(item, ADDRESS)?.to_owned(),
        }),
    };
    let data = text(item, DATA)?.to_owned();
    let delivery = Delivery {
        id: text(item, ID)?.parse().map_err(|_| unreadable(ID))?,
        kind: text(item, KIND)?.parse().map_err(|_| unreadable(KIND))?,
        sequence: number(item, SEQUENCE)?,
        number: number(item, NUMBER)?,
        occurred_at: instant(item, OCCURRED_AT)?,
        sensor,
        data: RawValue::from_string(data).map_err(|_| unreadable(DATA))?,
        round: number(item, ROUND)?,
        released: false,
    };
    let attempts = attempts(item).iter().map(decode_attempt);
    Ok(DeliveryRecord {
        delivery,
        status: text(item, STATUS)?
            .parse()
            .map_err(|_| unreadable(STATUS))?,
        attempts: attempts.collect::<Result<_, _>>()?,
        updated: instant(item, UPDATED)?,
    })
}

/// The list of attempts as it is stored.
pub(super) fn attempts(item: &Item) -> &[AttributeValue] {
    item.get(ATTEMPTS)
        .and_then(|list| list.as_l().ok())
        .map_or(&[], Vec::as_slice)
}

/// The latest turn of a round that an attempt is kept of.
pub(super) fn last_turn(item: &Item, round: u32) -> Result<u32, StoreError> {
    let attempts = attempts(item).iter().map(decode_attempt);
    let attempts: Vec<Attempt> = attempts.collect::<Result<_, _>>()?;
    let of_round = attempts.iter().filter(|attempt| attempt.round == round);
    Ok(of_round.map(|attempt| attempt.turn).max().unwrap_or(0))
}

/// The end of an item, as DynamoDB's expiry reads it.
pub(super) fn expiry(now: Timestamp, retention: std::time::Duration) -> AttributeValue {
    let end = now.after(retention).nanoseconds().div_euclid(1_000_000_000);
    n(end)
}
