//! What happened to a sensor, told from its state before and after.
//!
//! Pure: two states in, what clients are told out. Every write of a state is one step, so two images
//! next to each other in the stream hold at most one change of connection and one of value, and the
//! connection comes first: a sensor is restored before its value changes.

use antumbra_shadow::Timestamp;

use super::id::{Generation, SensorId};
use super::sensor::{Address, SilenceTimeout};
use super::state::{Connection, State};
use super::value::Value;

/// Something clients are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occurrence {
    /// Whose.
    pub sensor: SensorId,
    /// Which of those that had this id.
    pub generation: Generation,
    /// Where it is, in free words.
    pub address: Address,
    /// Its number: 1 for the first of this sensor, without a gap.
    pub sequence: u64,
    /// When it happened.
    pub occurred_at: Timestamp,
    /// What it is.
    pub what: What,
}

impl Occurrence {
    /// A text that no other occurrence has, and this one always has.
    pub fn id(&self) -> String {
        let (sensor, generation) = (&self.sensor, self.generation.as_str());
        format!("{sensor}/{generation}/{}", self.sequence)
    }
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// The value is another one.
    Changed {
        /// The value before.
        previous: Value,
        /// The value now.
        current: Value,
        /// When that was measured.
        since: Timestamp,
    },
    /// It has been silent for too long.
    Lost {
        /// When it was last heard.
        last_seen: Timestamp,
        /// How long it may be silent.
        threshold: SilenceTimeout,
        /// What it said last.
        last_value: Option<Value>,
    },
    /// It is heard after it was lost, or after it was not seen in time.
    Restored {
        /// When it was found lost.
        lost_at: Timestamp,
        /// When it was last heard before; `None` if never.
        last_seen: Option<Timestamp>,
        /// When it was heard again.
        restored_at: Timestamp,
        /// What it says.
        value: Option<Value>,
        /// Whether that is another value than before.
        value_changed: bool,
    },
    /// It was registered and not heard in time.
    NeverSeen {
        /// When it was registered.
        registered_at: Timestamp,
        /// How long it may be silent.
        threshold: SilenceTimeout,
    },
}

impl What {
    /// The type of the notification.
    pub fn as_str(&self) -> &'static str {
        match self {
            What::Changed { .. } => "state.changed",
            What::Lost { .. } => "connection.lost",
            What::Restored { .. } => "connection.restored",
            What::NeverSeen { .. } => "connection.never_seen",
        }
    }
}

/// What happened between two states of a sensor, in order. Nothing happened to one that is new, or
/// whose sensor was merely moved or renamed.
pub fn between(old: Option<&State>, new: &State) -> Vec<Occurrence> {
    let Some(old) = old.filter(|old| old.generation == new.generation) else {
        return Vec::new();
    };
    let changed = changed(old, new);
    let contact = contact(old, new, changed.is_some());
    let found: Vec<(Timestamp, What)> = contact.into_iter().chain(changed).collect();
    let before = new.sequence().saturating_sub(found.len() as u64);
    (before + 1..)
        .zip(found)
        .map(|(sequence, (occurred_at, what))| Occurrence {
            sensor: new.sensor.clone(),
            generation: new.generation.clone(),
            address: new.address.clone(),
            sequence,
            occurred_at,
            what,
        })
        .collect()
}

fn changed(old: &State, new: &State) -> Option<(Timestamp, What)> {
    if new.changes <= old.changes {
        return None;
    }
    let previous = old.value.clone()?;
    let current = new.value.clone()?;
    let since = new.moment.as_ref()?.time();
    let what = What::Changed {
        previous,
        current,
        since,
    };
    Some((since, what))
}

fn contact(old: &State, new: &State, value_changed: bool) -> Option<(Timestamp, What)> {
    if new.contacts <= old.contacts {
        return None;
    }
    let threshold = new.silence_after;
    match new.connection {
        Connection::Lost => {
            let lost_at = new.lost_at.unwrap_or(new.deadline);
            let what = match new.last_seen {
                Some(last_seen) => What::Lost {
                    last_seen,
                    threshold,
                    last_value: new.value.clone(),
                },
                None => What::NeverSeen {
                    registered_at: new.registered_at,
                    threshold,
                },
            };
            Some((lost_at, what))
        }
        Connection::Online => {
            let restored_at = new.last_seen?;
            let what = What::Restored {
                lost_at: old.lost_at.unwrap_or(old.deadline),
                last_seen: old.last_seen,
                restored_at,
                value: new.value.clone(),
                value_changed,
            };
            Some((restored_at, what))
        }
        Connection::Never => None,
    }
}

#[cfg(test)]
mod tests;
