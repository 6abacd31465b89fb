//! A delivery, its attempts and its status.

use antumbra_shadow::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::id::DeliveryId;
use super::message::DeliveryMessage;
use crate::clients::ClientId;
use crate::sensors::{EventType, Generation, SensorEvent, SensorId};
use antumbra_shadow::word_enum;

/// The sensor of a delivery, in one of its registrations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SensorRef {
    pub id: SensorId,
    pub address: String,
    pub generation: Generation,
}

#[derive(Debug, Clone)]
pub struct Delivery {
    /// Stable over all attempts; contains the client's id.
    pub id: DeliveryId,
    pub event_type: EventType,
    /// Position of the event among all events of the sensor.
    pub sequence: u64,
    /// Position among events that supersede each other: changes of the value, or of the connection.
    pub number: u64,
    pub occurred_at: Timestamp,
    /// The sensor; `None` for a test.
    pub sensor: Option<SensorRef>,
    /// Details of the event, as JSON.
    pub data: Box<RawValue>,
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
                generation: event.generation.clone(),
            }),
            data: event.detail.to_json(),
        }
    }
}

word_enum! {
    /// Status of a delivery.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = DeliveryStatus))]
    pub enum Status as "status" {
        /// Queued; no attempt in this round.
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

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    pub at: Timestamp,
    pub round: u32,
    /// Number of the attempt in its round, from 1.
    pub number: u32,
    /// HTTP status of the response, if there was one.
    pub status: Option<u16>,
    pub latency_ms: u64,
    pub error: Option<String>,
}

word_enum! {
    /// Place where a delivery waits outside of the queues.
    pub enum Waiting as "place to wait" {
        /// In the due index, until a time.
        Due = "due",
        /// With its disabled client.
        Held = "held",
        /// Behind an earlier delivery of the same client and sensor.
        Behind = "behind",
    }
}

/// Progress of a delivery between its attempts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Progress {
    /// Number of times it was redelivered or released. Attempts are counted per round.
    pub round: u32,
    /// The round was requested by hand: it is never superseded, and its first attempt probes an open circuit.
    pub manual: bool,
    /// Attempts begun in this round.
    pub begun: u32,
    /// End of the lease of the attempt in progress. If it has passed, that attempt was interrupted.
    pub claimed_until: Option<Timestamp>,
    /// Time before which no attempt is made.
    pub not_before: Option<Timestamp>,
    /// Place outside of the queues; `None` if a message is in a queue.
    pub waiting: Option<Waiting>,
    /// Later deliveries of the same client and sensor wait for this one.
    pub chained: bool,
    /// Number of times it was queued again; makes the ids of its messages differ.
    pub queued: u32,
    /// Latest round in which it was delivered.
    pub delivered_round: Option<u32>,
}

#[derive(Debug, Clone)]
pub struct DeliveryRecord {
    pub delivery: Delivery,
    pub status: Status,
    pub progress: Progress,
    /// Its attempts, oldest first; the newest ones if there are very many.
    pub attempts: Vec<Attempt>,
    pub updated: Timestamp,
}

impl DeliveryRecord {
    /// Returns the message that queues the delivery again in the same round.
    pub fn message(&self) -> DeliveryMessage {
        DeliveryMessage {
            id: self.delivery.id.clone(),
            sensor: self
                .delivery
                .sensor
                .as_ref()
                .map(|sensor| sensor.id.clone()),
            round: self.progress.round,
            queued: self.progress.queued,
            manual: self.progress.manual,
        }
    }

    /// Returns the message that queues the delivery again in a new round.
    pub fn next_round(&self, manual: bool) -> DeliveryMessage {
        DeliveryMessage {
            round: self.progress.round.saturating_add(1),
            queued: self.progress.queued.saturating_add(1),
            manual,
            ..self.message()
        }
    }
}
