//! The latest state of a sensor: its value, and whether it talks.

pub mod attributes;

use antumbra_shadow::Timestamp;

use super::id::{Generation, SensorId, SensorType};
use super::reading::Owner;
use super::reading_time::ReadingTime;
use super::sensor::{Address, SilenceTimeout};
use super::value::Value;

pub use attributes::{Attributes, UnreadableState};

/// Whether a sensor talks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Connection {
    /// Registered and not heard yet.
    Never,
    /// Heard, and not silent for too long since.
    Online,
    /// Silent for too long. Without a time last seen, it was never heard at all.
    Lost,
}

impl Connection {
    /// The word for it, as stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Connection::Never => "NEVER",
            Connection::Online => "ONLINE",
            Connection::Lost => "LOST",
        }
    }

    /// Reads the word.
    pub fn parse(word: &str) -> Option<Connection> {
        [Connection::Never, Connection::Online, Connection::Lost]
            .into_iter()
            .find(|connection| connection.as_str() == word)
    }
}

/// All that is kept of a sensor's present. It is there from registration on.
///
/// What happens to a sensor is counted in two numbers, each of which one write can raise without having
/// read the other: `changes`, how many runs of equal values there were, and `contacts`, how often the
/// sensor was lost or came back. [`State::sequence`] makes one number of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// Whose.
    pub sensor: SensorId,
    /// Which of those that had this id.
    pub generation: Generation,
    /// When it was registered, in whole milliseconds.
    pub registered_at: Timestamp,
    /// A copy of the sensor's, so that nothing has to be read to tell of a change.
    pub address: Address,
    /// A copy of the sensor's.
    pub sensor_type: SensorType,
    /// A copy of the sensor's.
    pub silence_after: SilenceTimeout,
    /// The newest value; `None` before the first.
    pub value: Option<Value>,
    /// When the newest value was measured.
    pub moment: Option<ReadingTime>,
    /// Since when it has been that value. Kept for switches alone (0, 1, false, true): of other values
    /// one write without a read cannot tell.
    pub since: Option<Timestamp>,
    /// When the queue took in the last signal, in whole milliseconds.
    pub last_seen: Option<Timestamp>,
    /// When silence will have lasted too long.
    pub deadline: Timestamp,
    /// Whether it talks.
    pub connection: Connection,
    /// When it was found lost.
    pub lost_at: Option<Timestamp>,
    /// Runs of equal values.
    pub changes: u64,
    /// Losses and returns.
    pub contacts: u64,
    /// When a sweep has to look; `None` while it is lost.
    pub check_at: Option<Timestamp>,
}

impl State {
    /// The number of the last occurrence of this sensor, 0 before the first. Occurrences are what clients
    /// are told: lost, never seen, restored, changed. The first value is a baseline and the first contact
    /// is expected, so neither counts.
    pub fn sequence(&self) -> u64 {
        self.changes.saturating_sub(1) + self.contacts
    }

    /// Whether a sign of life is waited for.
    pub fn is_awaited(&self) -> bool {
        self.connection != Connection::Lost
    }

    /// Whose readings are kept.
    pub fn owner(&self) -> Owner {
        Owner {
            sensor: self.sensor.clone(),
            generation: self.generation.clone(),
            sensor_type: self.sensor_type.clone(),
        }
    }
}
