//! The queues of deliveries.

use std::sync::Arc;

use super::message::DeliveryMessage;
use crate::clients::Mode;
use crate::notifications::{Channel, SendError};

/// The two queues of deliveries, or of their dead letters.
#[derive(Clone)]
pub struct Queues {
    /// FIFO, one message group per client and sensor, for mode `every`.
    pub ordered: Arc<dyn Channel>,
    /// Standard queue, for mode `latest`.
    pub unordered: Arc<dyn Channel>,
}

/// Error of a queue that did not accept a message; can be retried.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the queue failed: {0}")]
pub struct QueueError(pub String);

impl Queues {
    /// Returns the queue of a mode.
    pub fn of(&self, mode: Mode) -> &Arc<dyn Channel> {
        match mode {
            Mode::Every => &self.ordered,
            Mode::Latest => &self.unordered,
        }
    }

    /// Queues a delivery.
    pub async fn send(&self, mode: Mode, message: &DeliveryMessage) -> Result<(), QueueError> {
        let message = message.to_queue();
        let sent = self.of(mode).send(std::slice::from_ref(&message)).await;
        match sent.into_iter().next() {
            Some(Ok(())) => Ok(()),
            Some(Err(SendError::Retry(reason) | SendError::Permanent(reason))) => {
                Err(QueueError(reason))
            }
            None => Err(QueueError("no response".to_owned())),
        }
    }
}
