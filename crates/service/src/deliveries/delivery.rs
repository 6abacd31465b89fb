//! What a delivery is, and what became of it.

use std::fmt;
use std::str::FromStr;

use antumbra_shadow::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::id::DeliveryId;
use crate::sensors::SensorId;

/// What occurred, as the client reads it in `type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `state.changed`
    StateChanged,
    /// `connection.lost`
    ConnectionLost,
    /// `connection.restored`
    ConnectionRestored,
    /// `connection.never_seen`
    ConnectionNeverSeen,
    /// `client.test`: nothing occurred, the client is being tried.
    ClientTest,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 5] = [
        Kind::StateChanged,
        Kind::ConnectionLost,
        Kind::ConnectionRestored,
        Kind::ConnectionNeverSeen,
        Kind::ClientTest,
    ];

    /// As it is written everywhere.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::StateChanged => "state.changed",
            Kind::ConnectionLost => "connection.lost",
            Kind::ConnectionRestored => "connection.restored",
            Kind::ConnectionNeverSeen => "connection.never_seen",
            Kind::ClientTest => "client.test",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Kind, String> {
        let found = Kind::ALL.into_iter().find(|kind| kind.as_str() == text);
        found.ok_or_else(|| format!("there is no kind {text:?}"))
    }
}

/// The sensor something occurred at.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct SensorRef {
    pub id: SensorId,
    pub address: String,
}

/// One thing that occurred, for one client.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// The same over all attempts; says whose it is.
    pub id: DeliveryId,
    /// What occurred.
    pub kind: Kind,
    /// Its number among all that occurred at the sensor.
    pub sequence: u64,
    /// Its number among those that overtake each other: changes of state, or of the connection.
    pub number: u64,
    /// When.
    pub occurred_at: Timestamp,
    /// Where; nowhere for a test.
    pub sensor: Option<SensorRef>,
    /// What there is to say of it, as JSON.
    pub data: Box<RawValue>,
    /// How often it was queued again.
    pub round: u32,
    /// Whether it is to be sent even though the client is disabled: it was parked, and the client is
    /// being enabled. It keeps its turns if the client is disabled again before it arrived.
    pub released: bool,
}

/// What a delivery has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = DeliveryStatus))]
pub enum Status {
    /// Queued again, and nothing happened since.
    Pending,
    /// The client has it.
    Delivered,
    /// It failed and will be tried again.
    Failed,
    /// It failed for the last time, or was cut off in its last turn.
    Dead,
    /// The client, or its link to the sensor, was gone.
    Skipped,
    /// A newer one made it pointless.
    Superseded,
    /// The client was disabled.
    Parked,
}

impl Status {
    /// All of them.
    pub const ALL: [Status; 7] = [
        Status::Pending,
        Status::Delivered,
        Status::Failed,
        Status::Dead,
        Status::Skipped,
        Status::Superseded,
        Status::Parked,
    ];

    /// As it is written everywhere.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Pending => "pending",
            Status::Delivered => "delivered",
            Status::Failed => "failed",
            Status::Dead => "dead",
            Status::Skipped => "skipped",
            Status::Superseded => "superseded",
            Status::Parked => "parked",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Status {
    type Err = String;

    fn from_str(text: &str) -> Result<Status, String> {
        let found = Status::ALL
            .into_iter()
            .find(|status| status.as_str() == text);
        found.ok_or_else(|| format!("there is no status {text:?}"))
    }
}

/// One turn of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// When it began.
    pub at: Timestamp,
    /// In which round: how often the delivery had been queued again by then.
    pub round: u32,
    /// Which turn of its round it was, from 1 on.
    pub turn: u32,
    /// What the endpoint answered.
    pub status: Option<u16>,
    /// How long it took, in milliseconds.
    pub latency_ms: u64,
    /// What went wrong.
    pub error: Option<String>,
}

/// A delivery as the history has it.
#[derive(Debug, Clone)]
pub struct DeliveryRecord {
    /// What was to be delivered.
    pub delivery: Delivery,
    /// What it has come to.
    pub status: Status,
    /// Its turns, the oldest first; of very many only the newest.
    pub attempts: Vec<Attempt>,
    /// When something happened to it last.
    pub updated: Timestamp,
}
