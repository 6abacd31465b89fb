//! Deliveries and their attempts.

use serde::Serialize;
use serde_json::value::RawValue;
#[cfg(feature = "openapi")]
use utoipa::ToSchema;

use super::Time;
use crate::deliveries::{self, DeliveryId, DeliveryRecord, Release, Requeued, Status};

/// A delivery: one event for one client.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct Delivery {
    /// Delivery id, sent as `webhook-id`.
    pub id: String,
    /// Client id.
    pub client: String,
    /// Sensor id; absent for a test delivery.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sensor: Option<String>,
    /// Registration of the sensor; sequence numbers start again with each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<String>,
    /// Event type.
    #[serde(rename = "type")]
    pub event_type: &'static str,
    /// Sequence number among all events of the sensor.
    pub sequence: u64,
    /// Time of the event.
    pub occurred_at: Time,
    /// Event data, as in the webhook body.
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub data: Box<RawValue>,
    /// Delivery status.
    pub status: Status,
    /// Attempts, oldest first. Only the newest of very many are kept.
    pub attempts: Vec<Attempt>,
    /// Time of the last change of this record.
    pub updated_at: Time,
}

impl From<DeliveryRecord> for Delivery {
    fn from(record: DeliveryRecord) -> Delivery {
        let delivery = record.delivery;
        let generation = delivery.sensor.as_ref().map(|sensor| &sensor.generation);
        Delivery {
            generation: generation.map(ToString::to_string),
            id: delivery.id.to_string(),
            client: delivery.id.client().to_string(),
            sensor: delivery.sensor.map(|sensor| sensor.id.to_string()),
            event_type: delivery.event_type.as_str(),
            sequence: delivery.sequence,
            occurred_at: delivery.occurred_at.into(),
            data: delivery.data,
            status: record.status,
            attempts: record.attempts.into_iter().map(Attempt::from).collect(),
            updated_at: record.updated.into(),
        }
    }
}

page! {
    /// A page of deliveries.
    DeliveryPage { deliveries: Delivery } from DeliveryRecord
}

/// One attempt to deliver.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct Attempt {
    /// Start of the attempt.
    pub at: Time,
    /// Number of the attempt since the delivery was queued, from 1.
    pub number: u32,
    /// HTTP status of the endpoint's response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Duration of the attempt.
    pub latency_milliseconds: u64,
    /// Reason of the failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl From<deliveries::Attempt> for Attempt {
    fn from(attempt: deliveries::Attempt) -> Attempt {
        Attempt {
            at: attempt.at.into(),
            number: attempt.number,
            status: attempt.status,
            latency_milliseconds: attempt.latency_ms,
            error: attempt.error,
        }
    }
}

/// A delivery that was queued.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct QueuedDelivery {
    /// Delivery id.
    pub delivery: String,
}

impl From<DeliveryId> for QueuedDelivery {
    fn from(id: DeliveryId) -> QueuedDelivery {
        QueuedDelivery {
            delivery: id.to_string(),
        }
    }
}

/// Progress of redelivering many deliveries.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct RedeliveryProgress {
    /// Number of deliveries that this request queued.
    pub queued: usize,
    /// Cursor for the next request; absent when all deliveries are queued.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

impl From<Requeued> for RedeliveryProgress {
    fn from(requeued: Requeued) -> RedeliveryProgress {
        RedeliveryProgress {
            queued: requeued.queued,
            next_cursor: requeued.next.map(|cursor| cursor.0),
        }
    }
}

/// A client that was enabled.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct EnabledClient {
    /// Number of held deliveries that were released to the queue.
    pub queued: usize,
    /// More held deliveries are being released.
    pub releasing: bool,
}

impl From<Release> for EnabledClient {
    fn from(release: Release) -> EnabledClient {
        EnabledClient {
            queued: release.queued,
            releasing: !release.finished,
        }
    }
}
