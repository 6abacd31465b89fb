//! Deliveries: what occurred at a sensor, POSTed to the clients linked to it.
//!
//! The life of one:
//!
//! ```text
//! queued ── a turn ─┬─> delivered                      2xx
//!   ^               ├─> failed ──> the next turn       anything else; SQS hides the message until then
//!   │               ├─> dead                           the tenth turn failed, or was cut off
//!   │               ├─> parked                         the client is disabled, or said 410
//!   │               ├─> skipped                        the link or the client is gone
//!   │               └─> superseded                     mode latest, and there is a newer one
//!   └─ redeliver, enable ──────────────────────────────┘
//! ```
//!
//! The queue is the retry engine: it counts the turns and keeps the time between them. [`before`] and
//! [`after`] decide (pure), [`Deliver`] does what they say, [`Deliveries`] queues again. Every turn is
//! written down in the [`DeliveryStore`], read back as [`History`].

mod body;
mod decide;
mod delays;
mod deliver;
mod delivery;
mod id;
mod message;
mod occurred;
mod ports;
mod redeliver;

pub use body::{body, milliseconds};
pub use decide::{
    AttemptOutcome, NextStep, Policy, SPARE_RECEIVES, after, before, open_for, unheard,
};
pub use delays::{Curve, Delays};
pub use deliver::{Deliver, MessageDisposition};
pub use delivery::{Attempt, Delivery, DeliveryRecord, Kind, SensorRef, Status};
pub use id::{DeliveryId, InvalidDeliveryId};
pub use message::{InvalidMessage, decode, encode, group, queue_message};
pub use occurred::Occurred;
pub use ports::{
    DeliveryContext, DeliveryStore, History, HistoryQuery, HttpAnswer, MessageVisibility, Post,
    PostError, Sender, Subject,
};
pub use redeliver::{Deliveries, Queues, RedeliverError, Requeued};
