//! The latest state of a sensor: its value and its connection.

pub mod attributes;

use antumbra_shadow::Timestamp;

use super::id::{Generation, SensorId, SensorType};
use super::reading::Owner;
use super::reading_time::ReadingTime;
use super::sensor::{Address, SilenceTimeout};
use super::value::Value;
use antumbra_shadow::word_enum;

pub use attributes::{Attributes, UnreadableState};

word_enum! {
    pub enum Connection as "connection" {
        /// Registered; no signal yet.
        Never = "NEVER",
        /// Sent a signal within its timeout.
        Online = "ONLINE",
        /// Silent for longer than its timeout. Without `last_seen` it never sent a signal.
        Lost = "LOST",
    }
}

/// The current state of a sensor. It exists from registration on.
///
/// Two counters number the events of a sensor; a write can increment either without reading the other: `changes`,
/// the number of runs of equal values, and `contacts`, the number of losses and returns. [`State::sequence`]
/// combines them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    pub sensor: SensorId,
    pub generation: Generation,
    /// Time of registration, in whole milliseconds.
    pub registered_at: Timestamp,
    /// Address, type and silence timeout are copies of the sensor's, so that notifications need no read.
    pub address: Address,
    pub sensor_type: SensorType,
    pub silence_after: SilenceTimeout,
    /// The newest value; `None` before the first.
    pub value: Option<Value>,
    /// Reading time of the newest value.
    pub moment: Option<ReadingTime>,
    /// Time since which the value is the same. Only for switches (0, 1, false, true): for other values a write
    /// without a read cannot know.
    pub since: Option<Timestamp>,
    /// Time at which the queue received the last signal, in whole milliseconds.
    pub last_seen: Option<Timestamp>,
    /// Time at which the sensor is lost without a further signal.
    pub deadline: Timestamp,
    pub connection: Connection,
    pub lost_at: Option<Timestamp>,
    /// Runs of equal values.
    pub changes: u64,
    /// Losses and returns.
    pub contacts: u64,
    /// Time of the next check by the sweep; `None` while it is lost.
    pub check_at: Option<Timestamp>,
}

impl State {
    /// Returns the sequence number of the last event, 0 before the first. The first value is a baseline and the
    /// first contact is expected, so neither is an event.
    pub fn sequence(&self) -> u64 {
        self.changes.saturating_sub(1) + self.contacts
    }

    pub fn is_awaited(&self) -> bool {
        self.connection != Connection::Lost
    }

    pub fn owner(&self) -> Owner {
        Owner {
            sensor: self.sensor.clone(),
            generation: self.generation.clone(),
            sensor_type: self.sensor_type.clone(),
        }
    }
}
