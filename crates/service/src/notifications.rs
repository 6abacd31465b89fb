//! Sending of messages to channels: queues, topics, event buses, MQTT.
//!
//! [`dispatch`] keeps the order per key, fills batches, retries, and returns which messages were sent. [`suspension`]
//! records targets that keep failing.

mod channel;
mod dispatch;
mod schedule;
pub mod suspension;

pub use channel::{Channel, ChannelLimits, Message, SendError, attribute_bytes};
pub use dispatch::{
    DispatchSummary, Envelope, RejectedMessage, SendFailure, dispatch, dispatch_one, dispatch_with,
};
