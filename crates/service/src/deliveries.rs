//! Deliveries: sensor events, POSTed to the clients linked to the sensor.
//!
//! Life of a delivery:
//!
//! ```text
//! queued ── attempt ─┬─> delivered                  2xx
//!   ^                ├─> failed ──> next attempt    any other response; SQS hides the message until then
//!   │                ├─> dead                       the last attempt failed or was interrupted
//!   │                ├─> held                       the client is disabled, or responded 410
//!   │                ├─> skipped                    the link or the client does not exist any more
//!   │                └─> superseded                 mode latest, and there is a newer event
//!   └─ redeliver, enable ───────────────────────────┘
//! ```
//!
//! The queue drives retries: it counts attempts and keeps the time between them. [`next_step`] and
//! [`attempt_outcome`] decide (pure), [`Deliver`] carries out, [`Deliveries`] queues again. Every attempt is
//! recorded in the [`DeliveryStore`] and read through [`History`].

mod body;
mod decide;
mod delays;
mod deliver;
mod delivery;
mod id;
mod message;
mod ports;
mod redeliver;

pub use crate::clock::rfc3339_milliseconds as milliseconds;
pub use crate::sensors::EventType;
pub use body::body;
pub use decide::{
    AttemptOutcome, NextStep, Policy, SPARE_RECEIVES, attempt_outcome, circuit_after_failure,
    next_step, unrecorded_attempts,
};
pub use delays::{Curve, Delays};
pub use deliver::{Deliver, MessageDisposition};
pub use delivery::{Attempt, Delivery, DeliveryRecord, SensorRef, Status};
pub use id::{DeliveryId, InvalidDeliveryId};
pub use message::{InvalidMessage, decode, encode, group, queue_message};
pub use ports::{
    DeliveryContext, DeliveryStore, History, HistoryQuery, HttpResponse, MessageVisibility, Post,
    PostError, Sender, Subject,
};
pub use redeliver::{Deliveries, Queues, RedeliverError, Requeued};
