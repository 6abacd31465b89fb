//! Records a signal in the sensor's state, in one write without a read.
//!
//! All right-hand sides of an update see the item as it was before. The update can therefore count changes
//! without knowing the old value: `marks` is a map with one member, the mark of the current value, holding
//! 0, so `if_not_exists(#marks.#mark, :one)` is 0 for the same value and 1 for another. In the same manner
//! `awaited`, which holds 0 and exists only while the sensor is not lost, counts returns.
//!
//! Value and contact have separate orders: the device's time decides which value is newer, the queue's
//! time when the sensor was last seen. Mostly both are newer, and one update sets both. If signals overtook
//! each other the condition fails, the returned item shows which of the two is newer, and a second update
//! sets that one.

use std::collections::HashMap;

use antumbra_service::sensors::reading_time::{fixed_width, milliseconds};
use antumbra_service::sensors::state::Connection;
use antumbra_service::sensors::state::attributes::{LAST_SEEN, ORDER};
use antumbra_service::sensors::{
    Outcome, OwnedReading, Recorded, Signal, State, StateStore, StoreError,
};
use antumbra_wire::items::index_keys;
use aws_sdk_dynamodb::types::AttributeValue;

use super::DynamoDbSensors;
use super::item::{self, scalar};
use super::keys;
use crate::table::{EXISTS, Item, Outcome as WriteOutcome, Write};
use crate::value::{number, read_number, read_text, text};

const CONTACT: &str = "#contacts = #contacts + if_not_exists(#awaited, :one), #awaited = :zero, \
     #deadline = #silenceAfterMs + :sent, #lastSeen = :sent, #connection = :online, \
     #checkAt = if_not_exists(#checkAt, :sent), #liveShard = :shard";
const VALUE: &str = "#changes = #changes + if_not_exists(#marks.#mark, :one), #marks = :marks, \
     #value = :value, #order = :order";
/// The time since which a switch has its value, under that value's mark.
const SINCE: &str = "#since.#mark = if_not_exists(#since.#mark, :time)";
const NO_SINCE: &str = "#since = :nothing";

const NEWER: &str = "(attribute_not_exists(#order) OR #order < :order)";
/// Two signals may be sent in one millisecond.
const NOT_EARLIER: &str = "(attribute_not_exists(#lastSeen) OR #lastSeen <= :sent)";
/// A comparison with a missing attribute is false.
const NEWER_THAN_ANOTHER: &str = "#order < :order";
const LATER_THAN_ANOTHER: &str = "#lastSeen < :sent";
/// Updates for one signal. Two suffice unless other writers change the same state.
const STEPS: u32 = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Both,
    Value,
    Contact,
}

impl StateStore for DynamoDbSensors {
    async fn record(&self, signal: &Signal) -> Result<Option<Recorded>, StoreError> {
        let mut part = Part::Both;
        for _ in 0..STEPS {
            let (outcome, before) = match self.table.write(self.update(signal, part)?).await? {
                WriteOutcome::Applied(before) if part == Part::Contact => {
                    (not_newer(signal, &before), before)
                }
                WriteOutcome::Applied(before) => (newer(signal, &before)?, before),
                WriteOutcome::Refused(refusal) => {
                    let Some(stored) = refusal.stored else {
                        return Ok(None);
                    };
                    if let Some(next) = remaining(signal, &stored) {
                        part = next;
                        continue;
                    }
                    (not_newer(signal, &stored), stored)
                }
            };
            return Ok(Some(Recorded {
                outcome,
                owner: item::state(&before)?.owner(),
            }));
        }
        Err(StoreError::Throttled)
    }

    async fn save_readings(&self, readings: &[OwnedReading]) -> Vec<Result<(), StoreError>> {
        let retention = &self.config.retention;
        let puts = readings.iter().map(|owned| {
            let (reading, owner) = (&owned.reading, &owned.owner);
            Write::put(item::of_reading(&self.table, reading, owner, retention))
        });
        self.table.write_many(puts.collect()).await
    }
}

impl DynamoDbSensors {
    fn update(&self, signal: &Signal, part: Part) -> Result<Write, StoreError> {
        let mark = signal.value().mark();
        let sent = number(milliseconds(signal.sent()));
        let mut values =
            HashMap::from([(":one".to_owned(), number(1)), (":sent".to_owned(), sent)]);
        let mut names = HashMap::new();
        let mut sets = Vec::new();
        let mut removes = Vec::new();
        let mut value = |name: &str, value| values.insert(name.to_owned(), value);
        if part != Part::Contact {
            value(
                ":marks",
                AttributeValue::M(HashMap::from([(mark.clone(), number(0))])),
            );
            value(":value", scalar(signal.value()));
            value(":order", text(signal.moment().to_string()));
            names.insert("#mark".to_owned(), mark);
            sets.push(VALUE);
            match signal.value().other_switch_marks() {
                Some(others) => {
                    sets.push(SINCE);
                    value(":time", text(time(signal)?));
                    for (at, other) in others.into_iter().enumerate() {
                        removes.push(format!("#since.#other{at}"));
                        names.insert(format!("#other{at}"), other.to_owned());
                    }
                }
                None => {
                    sets.push(NO_SINCE);
                    value(":nothing", item::no_value());
                }
            }
        }
        if part != Part::Value {
            value(":zero", number(0));
            value(":online", text(Connection::Online.as_str()));
            value(
                ":shard",
                text(index_keys::live_shard(
                    signal.sensor().shard(self.config.shards),
                )),
            );
            sets.push(CONTACT);
            removes.push("#lostAt".to_owned());
        } else {
            values.remove(":sent");
        }
        let condition = match part {
            Part::Both => format!("{EXISTS} AND {NEWER} AND {NOT_EARLIER}"),
            Part::Value => NEWER_THAN_ANOTHER.to_owned(),
            Part::Contact => LATER_THAN_ANOTHER.to_owned(),
        };
        let mut update = format!("SET {}", sets.join(", "));
        if !removes.is_empty() {
            update.push_str(" REMOVE ");
            update.push_str(&removes.join(", "));
        }
        let mut write = Write::update(keys::state(signal.sensor()), update)
            .condition(condition)
            .returning_old();
        for (name, value) in values {
            write = write.value(&name, value);
        }
        for (placeholder, attribute) in names {
            write = write.name(&placeholder, attribute);
        }
        Ok(write)
    }
}

fn time(signal: &Signal) -> Result<String, StoreError> {
    fixed_width(signal.moment().time()).map_err(|error| StoreError::Invalid(error.to_string()))
}

/// The part of a signal that the stored state lacks.
fn remaining(signal: &Signal, stored: &Item) -> Option<Part> {
    let order = read_text(stored, ORDER).ok();
    let last_seen = read_number::<i64>(stored, LAST_SEEN).ok();
    let sent = milliseconds(signal.sent());
    let is_newer = order.is_none_or(|order| order < signal.moment().to_string().as_str());
    if is_newer {
        let not_earlier = last_seen.is_none_or(|seen| seen <= sent);
        return Some(if not_earlier { Part::Both } else { Part::Value });
    }
    let is_later = last_seen.is_none_or(|seen| seen < sent);
    is_later.then_some(Part::Contact)
}

/// The outcome of a value that is newer than the stored one.
fn newer(signal: &Signal, before: &Item) -> Result<Outcome, StoreError> {
    let State { value, .. } = item::state(before)?;
    Ok(match value {
        None => Outcome::First,
        Some(value) if value == *signal.value() => Outcome::Same,
        Some(_) => Outcome::Changed,
    })
}

/// The outcome of a value that is not newer.
fn not_newer(signal: &Signal, stored: &Item) -> Outcome {
    if read_text(stored, ORDER) == Ok(signal.moment().to_string().as_str()) {
        Outcome::Duplicate
    } else {
        Outcome::Stale
    }
}
