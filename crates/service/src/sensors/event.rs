//! Sensor events: the differences between two states of a sensor that clients are notified of.
//!
//! Pure. Every write of a state is one step, so two consecutive images in the stream differ by at most one change
//! of the connection and one of the value. The change of the connection comes first: a sensor is restored before
//! its value changes.

use antumbra_shadow::Timestamp;
use serde::{Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

use super::id::{Generation, SensorId};
use super::sensor::{Address, SilenceTimeout};
use super::state::{Connection, State};
use super::value::Value;
use crate::clock::rfc3339_milliseconds;
use antumbra_shadow::word_enum;

word_enum! {
    /// Type of a delivery, as clients read it in `type`.
    pub enum EventType as "type of event" {
        StateChanged = "state.changed",
        /// A sensor was silent for longer than its timeout.
        ConnectionLost = "connection.lost",
        /// A lost sensor sent a signal.
        ConnectionRestored = "connection.restored",
        /// A registered sensor did not send its first signal in time.
        ConnectionNeverSeen = "connection.never_seen",
        /// A test of the client's endpoint; no sensor is involved.
        ClientTest = "client.test",
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SensorEvent {
    pub sensor: SensorId,
    /// The registration of the sensor that the event belongs to.
    pub generation: Generation,
    pub address: Address,
    /// Position among all events of the sensor: 1 for the first, without gaps.
    pub sequence: u64,
    /// Position among events that supersede each other: changes of the value, or of the connection.
    pub number: u64,
    pub occurred_at: Timestamp,
    pub detail: EventDetail,
}

/// Details of an event. Their JSON is what clients read in `data`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub enum EventDetail {
    StateChanged {
        previous: Value,
        current: Value,
        /// Time at which the current value was measured.
        #[serde(serialize_with = "milliseconds")]
        since: Timestamp,
    },
    ConnectionLost {
        #[serde(serialize_with = "milliseconds")]
        last_seen: Timestamp,
        /// Silence after which the sensor is lost.
        #[serde(rename = "thresholdSeconds")]
        threshold: SilenceTimeout,
        #[serde(rename = "lastState")]
        last_value: Option<Value>,
    },
    ConnectionRestored {
        /// Time at which the sensor was found lost.
        #[serde(serialize_with = "milliseconds")]
        lost_at: Timestamp,
        /// Time of the signal that restored the connection.
        #[serde(serialize_with = "milliseconds")]
        restored_at: Timestamp,
        /// Time since the last signal before; since the loss was found if there was none.
        outage_seconds: i64,
        #[serde(rename = "state")]
        value: Option<Value>,
        /// True if the same signal changed the value.
        #[serde(rename = "stateChanged")]
        value_changed: bool,
    },
    ConnectionNeverSeen {
        #[serde(serialize_with = "milliseconds")]
        registered_at: Timestamp,
        #[serde(rename = "thresholdSeconds")]
        threshold: SilenceTimeout,
    },
}

impl SensorEvent {
    /// Returns the events between two states of a sensor, in order. A new sensor, or one that was only moved or
    /// renamed, has none.
    pub fn between(old: Option<&State>, new: &State) -> Vec<SensorEvent> {
        let Some(old) = old.filter(|old| old.generation == new.generation) else {
            return Vec::new();
        };
        let changed = value_change(old, new);
        let contact = connection_change(old, new, changed.is_some());
        let found: Vec<(Timestamp, EventDetail)> = contact.into_iter().chain(changed).collect();
        let before = new.sequence().saturating_sub(found.len() as u64);
        (before + 1..)
            .zip(found)
            .map(|(sequence, (occurred_at, detail))| SensorEvent {
                sensor: new.sensor.clone(),
                generation: new.generation.clone(),
                address: new.address.clone(),
                sequence,
                number: match detail {
                    EventDetail::StateChanged { .. } => new.changes,
                    _ => new.contacts,
                },
                occurred_at,
                detail,
            })
            .collect()
    }

    /// Returns an id that is unique to this event and stable.
    pub fn id(&self) -> String {
        let (sensor, generation) = (&self.sensor, self.generation.as_str());
        format!("{sensor}/{generation}/{}", self.sequence)
    }

    pub fn event_type(&self) -> EventType {
        match self.detail {
            EventDetail::StateChanged { .. } => EventType::StateChanged,
            EventDetail::ConnectionLost { .. } => EventType::ConnectionLost,
            EventDetail::ConnectionRestored { .. } => EventType::ConnectionRestored,
            EventDetail::ConnectionNeverSeen { .. } => EventType::ConnectionNeverSeen,
        }
    }
}

fn value_change(old: &State, new: &State) -> Option<(Timestamp, EventDetail)> {
    if new.changes <= old.changes {
        return None;
    }
    let previous = old.value.clone()?;
    let current = new.value.clone()?;
    let since = new.moment.as_ref()?.time();
    let detail = EventDetail::StateChanged {
        previous,
        current,
        since,
    };
    Some((since, detail))
}

fn connection_change(
    old: &State,
    new: &State,
    value_changed: bool,
) -> Option<(Timestamp, EventDetail)> {
    if new.contacts <= old.contacts {
        return None;
    }
    let threshold = new.silence_after;
    match new.connection {
        Connection::Lost => {
            let lost_at = new.lost_at.unwrap_or(new.deadline);
            let detail = match new.last_seen {
                Some(last_seen) => EventDetail::ConnectionLost {
                    last_seen,
                    threshold,
                    last_value: new.value.clone(),
                },
                None => EventDetail::ConnectionNeverSeen {
                    registered_at: new.registered_at,
                    threshold,
                },
            };
            Some((lost_at, detail))
        }
        Connection::Online => {
            let restored_at = new.last_seen?;
            let lost_at = old.lost_at.unwrap_or(old.deadline);
            let detail = EventDetail::ConnectionRestored {
                lost_at,
                restored_at,
                // The silence began with the last contact, not when it was detected.
                outage_seconds: whole_seconds(old.last_seen.unwrap_or(lost_at), restored_at),
                value: new.value.clone(),
                value_changed,
            };
            Some((restored_at, detail))
        }
        Connection::Never => None,
    }
}

impl EventDetail {
    pub fn to_json(&self) -> Box<RawValue> {
        // Values, texts and numbers always have a JSON form.
        to_raw_value(self).unwrap_or_else(|_| RawValue::NULL.to_owned())
    }
}

fn milliseconds<S: Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&rfc3339_milliseconds(*time))
}

fn whole_seconds(from: Timestamp, to: Timestamp) -> i64 {
    ((to.nanoseconds() - from.nanoseconds()) / 1_000_000_000).max(0) as i64
}

#[cfg(test)]
mod tests;
