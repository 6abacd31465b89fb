//! Notifications: what changed, sent to those who registered for it.

mod channel;

pub use channel::{BoxFuture, Channel, ChannelLimits, Message, SendError};
