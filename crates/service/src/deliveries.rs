//! Deliveries: sensor events, POSTed to the clients linked to the sensor.
//!
//! Life of a delivery:
//!
//! ```text
//! pending ── attempt ─┬─> delivered                  2xx
//!   ^                 ├─> failed ──> next attempt    any other response
//!   │                 ├─> dead                       the last attempt failed or was interrupted
//!   │                 ├─> held                       the client is disabled, or responded 410
//!   │                 ├─> skipped                    link, client or registration of the sensor do not exist any more
//!   │                 └─> superseded                 mode latest, and there is a newer event
//!   └─ redeliver, enable ────────────────────────────┘
//! ```
//!
//! The stream listener records a delivery and queues a message that names it. The record counts the attempts;
//! how often a queue delivers the message does not matter. A short wait hides the message in its queue. For a
//! longer one the message is deleted and the delivery waits in the due index. A delayed message ends that wait;
//! a schedule queues deliveries that none has queued ([`queue_due`]). In mode `every`, later deliveries of the
//! same client and sensor wait behind one that left the queue.
//!
//! [`next_step`] and [`attempt_outcome`] decide (pure), [`Deliver`] carries out, [`Deliveries`] queues again.

mod body;
mod decide;
mod delays;
mod deliver;
mod delivery;
mod due;
mod id;
mod message;
mod ports;
mod queues;
mod redeliver;

pub use crate::clock::rfc3339_milliseconds as milliseconds;
pub use crate::sensors::EventType;
pub use body::body;
pub use decide::{
    AttemptOutcome, NextStep, Policy, attempt_outcome, begun, circuit_after_failure, is_in_order,
    next_step,
};
pub use delays::{Curve, Delays};
pub use deliver::{Deliver, MessageDisposition, Processed};
pub use delivery::{Attempt, Delivery, DeliveryRecord, Progress, SensorRef, Status, Waiting};
pub use due::{DueSummary, queue_due};
pub use id::{DUE_SHARDS, DeliveryId, InvalidDeliveryId, due_shard};
pub use message::{DeliveryMessage, InvalidMessage};
pub use ports::{
    Claim, DeliveryContext, DeliveryStore, DueEntry, DueIndex, DueTask, HeldDelivery, History,
    HistoryQuery, HttpResponse, MessageVisibility, NewDeliveries, Post, PostError, Saved, Sender,
    Subject, Transition, Wait,
};
pub use queues::{DeadLetters, QueueError, Queues};
pub use redeliver::{Deliveries, RedeliverError, Release, Requeued};
