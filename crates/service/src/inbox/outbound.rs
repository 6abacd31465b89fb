//! Messages to devices: they go to the outbound queue, from which others pass them to the device.
//!
//! A FIFO queue accepts the same idempotency key for the same device once in five minutes, and keeps the order
//! of each device's messages. A standard queue does neither; the key is in the message for the reader to
//! compare.

use std::sync::Arc;

use antumbra_shadow::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;

use super::name::Source;
use crate::clock::Clock;
use crate::notifications::{Channel, Message, SendFailure, dispatch_one};
use crate::store::SendFuture;

const KEY_CHARS: usize = 128;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OutboundError {
    #[error("idempotencyKey must have 1 to {KEY_CHARS} ASCII characters, no space")]
    InvalidKey,
    #[error("the message with its envelope has {bytes} bytes, the limit is {limit}")]
    TooLarge { bytes: usize, limit: usize },
    /// The queue will never accept it.
    #[error("{0}")]
    Rejected(String),
    #[error("the outbound queue did not accept it in time")]
    Late,
}

/// A message to a device, as the outbound queue carries it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OutboundMessage<'a> {
    idempotency_key: &'a str,
    message: &'a RawValue,
    uuid: &'a str,
}

pub trait OutboundQueue: Send + Sync {
    /// Sends a message to a device, and retries until the deadline.
    fn send(
        &self,
        device: &Source,
        key: &str,
        message: &RawValue,
        until: Timestamp,
    ) -> impl SendFuture<Result<(), OutboundError>>;
}

pub struct Outbound {
    pub queue: Arc<dyn Channel>,
    pub clock: Arc<dyn Clock>,
}

impl OutboundQueue for Outbound {
    async fn send(
        &self,
        device: &Source,
        key: &str,
        message: &RawValue,
        until: Timestamp,
    ) -> Result<(), OutboundError> {
        if !(1..=KEY_CHARS).contains(&key.len()) || !key.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(OutboundError::InvalidKey);
        }
        let uuid = device.as_str();
        let body = serde_json::to_string(&OutboundMessage {
            idempotency_key: key,
            message,
            uuid,
        });
        let body = body.map_err(|error| OutboundError::Rejected(error.to_string()))?;
        let limit = self.queue.limits().message_bytes;
        if body.len() > limit {
            let bytes = body.len();
            return Err(OutboundError::TooLarge { bytes, limit });
        }
        let message = Message {
            // The same key for another device is another message.
            id: format!("{uuid}/{key}"),
            key: uuid.to_owned(),
            body,
            ..Message::default()
        };
        let sent = dispatch_one(Arc::clone(&self.queue), message, until, &*self.clock).await;
        sent.map_err(|failure| match failure {
            SendFailure::Rejected(reason) => OutboundError::Rejected(reason),
            SendFailure::Late => OutboundError::Late,
        })
    }
}
