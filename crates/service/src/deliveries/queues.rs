//! The queues of deliveries.

use std::sync::Arc;

use super::message::DeliveryMessage;
use crate::clients::Mode;
use crate::notifications::{Channel, Message, SendError};

#[derive(Clone)]
pub struct Queues {
    /// FIFO, one message group per client and sensor, for mode `every`.
    pub ordered: Arc<dyn Channel>,
    /// Standard queue, for mode `latest`.
    pub unordered: Arc<dyn Channel>,
}

/// The queues of dead letters, and the names of the queues that they go back to.
#[derive(Clone)]
pub struct DeadLetters {
    pub queues: Queues,
    pub ordered_source: String,
    pub unordered_source: String,
}

impl DeadLetters {
    /// Sends the message that starts a new round once it is moved back.
    pub async fn send(&self, mode: Mode, message: &DeliveryMessage) -> Result<(), QueueError> {
        let source = match mode {
            Mode::Every => &self.ordered_source,
            Mode::Latest => &self.unordered_source,
        };
        let attributes = [("reason", "dead letter"), ("source", source)];
        let attributes = attributes.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let message = Message {
            attributes: attributes.to_vec(),
            ..message.to_queue()
        };
        send(self.queues.of(mode), &message).await
    }
}

/// Error of a queue that did not accept a message; can be retried.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the queue failed: {0}")]
pub struct QueueError(pub String);

impl Queues {
    pub fn of(&self, mode: Mode) -> &Arc<dyn Channel> {
        match mode {
            Mode::Every => &self.ordered,
            Mode::Latest => &self.unordered,
        }
    }

    pub async fn send(&self, mode: Mode, message: &DeliveryMessage) -> Result<(), QueueError> {
        send(self.of(mode), &message.to_queue()).await
    }
}

async fn send(queue: &Arc<dyn Channel>, message: &Message) -> Result<(), QueueError> {
    let sent = queue.send(std::slice::from_ref(message)).await;
    match sent.into_iter().next() {
        Some(Ok(())) => Ok(()),
        Some(Err(SendError::Retry(reason) | SendError::Permanent(reason))) => {
            Err(QueueError(reason))
        }
        None => Err(QueueError("no response".to_owned())),
    }
}
