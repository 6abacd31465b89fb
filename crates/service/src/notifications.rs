//! Notifications: what changed, sent to those who registered for it.
//!
//! Which messages there are is decided elsewhere and before; here they are only sent. [`dispatch`] keeps
//! the order per key, fills batches, tries again and says what arrived.

mod channel;
mod dispatch;
mod schedule;

pub use channel::{BoxFuture, Channel, ChannelLimits, Message, SendError, attribute_bytes};
pub use dispatch::{
    ChannelMessage, DispatchSummary, Outbox, RejectedMessage, SendFailure, dispatch, dispatch_one,
};
