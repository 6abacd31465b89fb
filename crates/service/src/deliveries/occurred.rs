//! From what occurred at a sensor to what its clients are told. Pure.

use antumbra_shadow::Timestamp;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::body::milliseconds;
use super::delivery::{Delivery, Kind, SensorRef};
use super::id::DeliveryId;
use crate::clients::ClientId;
use crate::sensors::occurrences::between;
use crate::sensors::{Occurrence, State, Value, What};

const SECOND: i128 = 1_000_000_000;

/// Something that occurred, ready to be addressed to clients.
#[derive(Debug, Clone)]
pub struct Occurred {
    /// What.
    pub occurrence: Occurrence,
    /// Its number among those that overtake each other.
    number: u64,
    /// When the state was written, by the table's clock: later ones have later times.
    written: Timestamp,
    data: Box<RawValue>,
}

#[derive(Serialize)]
struct Changed<'a> {
    previous: &'a Value,
    current: &'a Value,
    since: String,
}

#[derive(Serialize)]
struct Lost<'a> {
    last_seen: String,
    threshold_seconds: u32,
    last_state: Option<&'a Value>,
}

#[derive(Serialize)]
struct Restored<'a> {
    lost_at: String,
    restored_at: String,
    outage_seconds: i64,
    state: Option<&'a Value>,
    state_changed: bool,
}

#[derive(Serialize)]
struct NeverSeen {
    registered_at: String,
    threshold_seconds: u32,
}

impl Occurred {
    /// Everything that occurred between two states, in order.
    pub fn between(old: Option<&State>, new: &State, written: Option<Timestamp>) -> Vec<Occurred> {
        let occurred = |occurrence: Occurrence| Occurred {
            number: match occurrence.what {
                What::Changed { .. } => new.changes,
                _ => new.contacts,
            },
            written: written.unwrap_or(occurrence.occurred_at),
            data: data(&occurrence.what),
            occurrence,
        };
        between(old, new).into_iter().map(occurred).collect()
    }

    /// The delivery to a client.
    pub fn to(&self, client: &ClientId) -> Delivery {
        let Occurrence {
            sensor,
            address,
            sequence,
            occurred_at,
            what,
            ..
        } = &self.occurrence;
        Delivery {
            id: DeliveryId::new(client, self.written, *sequence, &self.occurrence.id()),
            kind: kind(what),
            sequence: *sequence,
            number: self.number,
            occurred_at: *occurred_at,
            sensor: Some(SensorRef {
                id: sensor.clone(),
                address: address.as_str().to_owned(),
            }),
            data: self.data.clone(),
            round: 0,
            released: false,
        }
    }
}

fn kind(what: &What) -> Kind {
    match what {
        What::Changed { .. } => Kind::StateChanged,
        What::Lost { .. } => Kind::ConnectionLost,
        What::Restored { .. } => Kind::ConnectionRestored,
        What::NeverSeen { .. } => Kind::ConnectionNeverSeen,
    }
}

fn data(what: &What) -> Box<RawValue> {
    let raw = match what {
        What::Changed {
            previous,
            current,
            since,
        } => to_raw_value(&Changed {
            previous,
            current,
            since: milliseconds(*since),
        }),
        What::Lost {
            last_seen,
            threshold,
            last_value,
        } => to_raw_value(&Lost {
            last_seen: milliseconds(*last_seen),
            threshold_seconds: threshold.as_seconds(),
            last_state: last_value.as_ref(),
        }),
        What::Restored {
            lost_at,
            restored_at,
            value,
            value_changed,
            ..
        } => to_raw_value(&Restored {
            lost_at: milliseconds(*lost_at),
            restored_at: milliseconds(*restored_at),
            outage_seconds: seconds(*lost_at, *restored_at),
            state: value.as_ref(),
            state_changed: *value_changed,
        }),
        What::NeverSeen {
            registered_at,
            threshold,
        } => to_raw_value(&NeverSeen {
            registered_at: milliseconds(*registered_at),
            threshold_seconds: threshold.as_seconds(),
        }),
    };
    // Values, texts and numbers always have a JSON form.
    raw.unwrap_or_else(|_| RawValue::NULL.to_owned())
}

fn seconds(from: Timestamp, to: Timestamp) -> i64 {
    ((to.nanoseconds() - from.nanoseconds()) / SECOND).max(0) as i64
}
