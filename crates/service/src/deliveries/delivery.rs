//! A delivery, its attempts and its status.

use antumbra_shadow::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::id::DeliveryId;
use crate::clients::ClientId;
use crate::sensors::{EventType, SensorEvent, SensorId};
use crate::words::word_enum;

/// The sensor of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct SensorRef {
    pub id: SensorId,
    pub address: String,
}

/// One event for one client.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct Delivery {
    /// Stable over all attempts; contains the client's id.
    pub id: DeliveryId,
    pub event_type: EventType,
    /// Position of the event among all events of the sensor.
    pub sequence: u64,
    /// Position among events that supersede each other: changes of the value, or of the connection.
    pub number: u64,
    /// Time of the event.
    pub occurred_at: Timestamp,
    /// The sensor; `None` for a test.
    pub sensor: Option<SensorRef>,
    /// Details of the event, as JSON.
    pub data: Box<RawValue>,
    /// Number of times the delivery was queued again.
    pub round: u32,
    /// Send it although the client is disabled: it was held, and the client is being enabled. It
    /// keeps its attempts if the client is disabled again before it arrives.
    pub released: bool,
}

impl Delivery {
    /// Creates the delivery of an event to a client. `written` is the time at which the state was written, by
    /// the clock of the table; it makes ids of later events sort after earlier ones.
    pub fn new(event: &SensorEvent, written: Option<Timestamp>, client: &ClientId) -> Delivery {
        let time = written.unwrap_or(event.occurred_at);
        Delivery {
            id: DeliveryId::new(client, time, event.sequence, &event.id()),
            event_type: event.event_type(),
            sequence: event.sequence,
            number: event.number,
            occurred_at: event.occurred_at,
            sensor: Some(SensorRef {
                id: event.sensor.clone(),
                address: event.address.as_str().to_owned(),
            }),
            data: event.detail.to_json(),
            round: 0,
            released: false,
        }
    }
}

word_enum! {
    /// Status of a delivery.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = DeliveryStatus))]
    pub enum Status as "status" {
        /// Queued again; no attempt since.
        Pending = "pending",
        /// The client received it.
        Delivered = "delivered",
        /// An attempt failed; another one follows.
        Failed = "failed",
        /// The last attempt failed or was interrupted.
        Dead = "dead",
        /// The client, or its link to the sensor, does not exist any more.
        Skipped = "skipped",
        /// A newer event replaced it.
        Superseded = "superseded",
        /// The client is disabled.
        Held = "held",
    }
}

/// One attempt to deliver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// Start time.
    pub at: Timestamp,
    /// Round of the delivery.
    pub round: u32,
    /// Number of the attempt in its round, from 1.
    pub number: u32,
    /// HTTP status of the response, if there was one.
    pub status: Option<u16>,
    /// Duration in milliseconds.
    pub latency_ms: u64,
    /// Error, if the attempt failed.
    pub error: Option<String>,
}

/// A delivery as recorded in the history.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct DeliveryRecord {
    pub delivery: Delivery,
    pub status: Status,
    /// Its attempts, oldest first; the newest ones if there are very many.
    pub attempts: Vec<Attempt>,
    /// Time of the last change of this record.
    pub updated: Timestamp,
}
