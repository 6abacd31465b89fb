//! A signal becomes the state, in one write without a read.
//!
//! The right-hand sides of an update all see the item as it was before. So an update can count what it
//! does not know: a map with one member under the current value's mark, holding 0, makes
//! `if_not_exists(marks.#mark, 1)` say 0 for the same value and 1 for another; `awaited`, which holds 0
//! and is there only while the sensor is not lost, says the same of a return.
//!
//! Two questions, two orders: the device's moment decides whose value is newer, the queue's time when the
//! sensor was last heard. Mostly both are newer at once, and one update does both. Where signals overtook
//! each other its condition fails, the item that comes back says which of the two is newer, and a second
//! update does that one.

use std::collections::HashMap;

use antumbra_service::sensors::moment::{fixed_width, milliseconds};
use antumbra_service::sensors::state::Connection;
use antumbra_service::sensors::state::attributes::{LAST_SEEN, ORDER};
use antumbra_service::sensors::{Outcome, Recorded, Signal, State, StoreError};
use aws_sdk_dynamodb::types::AttributeValue;

use super::DynamoDbSensors;
use super::call::{Update, Updated};
use super::item::{self, Item, number, scalar, text};
use super::keys;

const HEARD: &str = "#contacts = #contacts + if_not_exists(#awaited, :one), #awaited = :zero, \
     #deadline = #silenceAfterMs + :sent, #lastSeen = :sent, #connection = :online, \
     #checkAt = if_not_exists(#checkAt, :sent), #liveShard = :shard";
const VALUE: &str = "#changes = #changes + if_not_exists(#marks.#mark, :one), #marks = :marks, \
     #value = :value, #order = :order";
/// A switch: how long it has been so is kept, under its own mark alone.
const SINCE: &str = "#since.#mark = if_not_exists(#since.#mark, :time)";
const NO_SINCE: &str = "#since = :nothing";

const EXISTS: &str = "attribute_exists(#PK)";
const NEWER: &str = "(attribute_not_exists(#order) OR #order < :order)";
/// Two signals may be sent in one millisecond.
const NOT_EARLIER: &str = "(attribute_not_exists(#lastSeen) OR #lastSeen <= :sent)";
/// Of what is not there nothing is true.
const NEWER_THAN_ANOTHER: &str = "#order < :order";
const LATER_THAN_ANOTHER: &str = "#lastSeen < :sent";
/// Steps for one signal. Two are enough unless others write the same state all the while.
const STEPS: u32 = 8;

/// What an update is to change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Both,
    Value,
    Contact,
}

impl DynamoDbSensors {
    pub(super) async fn record_signal(
        &self,
        signal: &Signal,
    ) -> Result<Option<Recorded>, StoreError> {
        let mut part = Part::Both;
        for _ in 0..STEPS {
            let (outcome, before) = match self.update(self.step(signal, part)?).await? {
                Updated::Done(before) if part == Part::Contact => {
                    (at_rest(signal, &before), before)
                }
                Updated::Done(before) => (newer(signal, &before)?, before),
                Updated::Refused { stored: None, .. } => return Ok(None),
                Updated::Refused {
                    stored: Some(stored),
                    ..
                } => match left(signal, &stored) {
                    Some(next) => {
                        part = next;
                        continue;
                    }
                    None => (at_rest(signal, &stored), stored),
                },
            };
            return Ok(Some(Recorded {
                outcome,
                owner: item::state(&before)?.owner(),
            }));
        }
        Err(StoreError::Throttled)
    }

    fn step(&self, signal: &Signal, part: Part) -> Result<Update, StoreError> {
        let mark = signal.value().mark();
        let sent = number(milliseconds(signal.sent()));
        let mut values =
            HashMap::from([(":one".to_owned(), number(1)), (":sent".to_owned(), sent)]);
        let mut other_names = HashMap::new();
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
            other_names.insert("#mark".to_owned(), mark);
            sets.push(VALUE);
            match signal.value().other_switch_marks() {
                Some(others) => {
                    sets.push(SINCE);
                    value(":time", text(time(signal)?));
                    for (at, other) in others.into_iter().enumerate() {
                        removes.push(format!("#since.#other{at}"));
                        other_names.insert(format!("#other{at}"), other.to_owned());
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
                text(keys::shard(signal.sensor().shard(self.config.shards))),
            );
            sets.push(HEARD);
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
        Ok(Update {
            key: keys::key(signal.sensor(), keys::STATE),
            update,
            condition,
            values,
            other_names,
        })
    }
}

fn time(signal: &Signal) -> Result<String, StoreError> {
    fixed_width(signal.moment().time()).map_err(|error| StoreError::Invalid(error.to_string()))
}

/// What a signal has to say that is not in this item yet.
fn left(signal: &Signal, stored: &Item) -> Option<Part> {
    let order = item::word(stored, ORDER).ok();
    let last_seen = item::whole(stored, LAST_SEEN).ok();
    let sent = milliseconds(signal.sent());
    let is_newer = order.is_none_or(|order| order < signal.moment().to_string().as_str());
    if is_newer {
        let not_earlier = last_seen.is_none_or(|seen| seen <= sent);
        return Some(if not_earlier { Part::Both } else { Part::Value });
    }
    let is_later = last_seen.is_none_or(|seen| seen < sent);
    is_later.then_some(Part::Contact)
}

/// What a value that is newer than the stored one did.
fn newer(signal: &Signal, before: &Item) -> Result<Outcome, StoreError> {
    let State { value, .. } = item::state(before)?;
    Ok(match value {
        None => Outcome::First,
        Some(value) if value == *signal.value() => Outcome::Same,
        Some(_) => Outcome::Changed,
    })
}

/// What a value that is not newer is.
fn at_rest(signal: &Signal, stored: &Item) -> Outcome {
    if item::word(stored, ORDER) == Ok(signal.moment().to_string().as_str()) {
        Outcome::Duplicate
    } else {
        Outcome::Stale
    }
}
