//! The queues of deliveries.

use std::sync::Arc;
use std::time::Duration;

use super::message::DeliveryMessage;
use crate::clients::Mode;
use crate::notifications::{Channel, Message, SendError};

/// Longest delay of a message in SQS.
const LONGEST_DELAY: Duration = Duration::from_secs(900);

#[derive(Clone)]
pub struct Queues {
    /// FIFO, one message group per client and sensor, for mode `every`.
    pub ordered: Arc<dyn Channel>,
    /// Standard queue, for mode `latest`, and for delayed messages of both modes.
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

    /// Queues a delivery of the due index so that it is received after a delay, rounded up to seconds. A delay that is too
    /// long for SQS is left to the schedule.
    ///
    /// A delayed message is not in flight. FIFO queues have no delay per message, but the standard queue serves both modes:
    /// the table keeps the order of deliveries in the due index.
    pub async fn send_delayed(
        &self,
        message: &DeliveryMessage,
        delay: Duration,
    ) -> Result<(), QueueError> {
        if delay > LONGEST_DELAY {
            return Ok(());
        }
        let seconds = delay.as_secs() + u64::from(delay.subsec_nanos() > 0);
        let message = Message {
            delay_seconds: u32::try_from(seconds).ok(),
            ..message.to_queue()
        };
        send(&self.unordered, &message).await
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
