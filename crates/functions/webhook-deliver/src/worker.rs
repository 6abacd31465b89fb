//! Makes one delivery attempt per message.

use std::time::Duration;

use antumbra_lambda_kit::batch::BatchSummary;
use antumbra_lambda_kit::{Handler, HandlerError, Invocation, Response};
use antumbra_service::clock::time_left;
use antumbra_service::deliveries::{
    Deliver, DeliveryStore, MessageDisposition, MessageVisibility, Sender, Status, decode,
};
use antumbra_service::notifications::BoxFuture;
use antumbra_shadow::Timestamp;
use antumbra_wire::events::sqs::{self, QueueMessage, SqsEventError};

/// Minimum time left to begin an attempt: the sender's timeout and the recording. An attempt that Lambda
/// interrupts would be missing from the history.
const ATTEMPT: Duration = Duration::from_secs(13);
/// Delay until a message is received again for which no time was left.
const SOON: Duration = Duration::from_secs(1);

/// Names of the function's counters.
pub const COUNTERS: &[&str] = &[
    "messages",
    "delivered",
    "held",
    "dropped",
    "postponed",
    "dead",
    "unreadable",
];

/// Delivers messages, and sets when the queue delivers them again.
pub struct Worker<L, S, V> {
    deliver: Deliver<L, S>,
    visibility: V,
}

impl<L: DeliveryStore, S: Sender, V: MessageVisibility> Worker<L, S, V> {
    pub fn new(deliver: Deliver<L, S>, visibility: V) -> Worker<L, S, V> {
        Worker {
            deliver,
            visibility,
        }
    }

    /// Processes one SQS event, message by message; its batch size is 1. A larger batch of a FIFO queue
    /// stops at the first message that is not done. Fails as a whole only if it is not an SQS event.
    pub async fn process_batch(
        &self,
        event: &[u8],
        deadline: Timestamp,
    ) -> Result<BatchSummary, SqsEventError> {
        let messages = sqs::read(event)?;
        let mut summary = BatchSummary::new(COUNTERS);
        summary.add("messages", messages.len());
        let mut stopped = false;
        for message in &messages {
            let again = match stopped {
                true => Some(SOON),
                false => self.attempt(message, deadline, &mut summary).await,
            };
            if let Some(delay) = again {
                self.hide(message, delay).await;
                summary.failed.push(message.id.clone());
                stopped |= message.group.is_some();
            }
        }
        Ok(summary)
    }

    /// Makes one attempt. Returns the delay until the message is to be received again; `None` if it is
    /// done.
    async fn attempt(
        &self,
        message: &QueueMessage,
        deadline: Timestamp,
        summary: &mut BatchSummary,
    ) -> Option<Duration> {
        let delivery = match decode(&message.body) {
            Ok(delivery) => delivery,
            Err(error) => {
                tracing::error!(message_id = message.id, %error, "not a delivery");
                summary.add("unreadable", 1);
                return Some(Duration::ZERO);
            }
        };
        if time_left(self.deliver.now(), deadline) < ATTEMPT {
            return Some(SOON);
        }
        let disposition = self.deliver.attempt(&delivery, message.receives).await;
        let attempt = message.receives;
        tracing::debug!(id = %delivery.id, attempt, ?disposition, "delivery attempted");
        let (counter, again) = match disposition {
            MessageDisposition::Done(Status::Delivered) => ("delivered", None),
            MessageDisposition::Done(Status::Held) => ("held", None),
            MessageDisposition::Done(_) => ("dropped", None),
            MessageDisposition::RetryAfter(delay) => ("postponed", Some(delay)),
            // The queue moves it to the dead-letter queue at its next receive.
            MessageDisposition::DeadLetter => ("dead", Some(Duration::ZERO)),
        };
        summary.add(counter, 1);
        again
    }

    /// Hides the message. If that fails, it returns after the queue's visibility timeout.
    async fn hide(&self, message: &QueueMessage, delay: Duration) {
        let hidden = self
            .visibility
            .postpone(&message.queue_arn, &message.receipt, delay)
            .await;
        if let Err(reason) = hidden {
            let message_id = &message.id;
            tracing::warn!(message_id, reason, "message visibility not changed");
        }
    }
}

impl<L: DeliveryStore, S: Sender, V: MessageVisibility> Handler for Worker<L, S, V> {
    fn handle(&self, invocation: Invocation) -> BoxFuture<'_, Result<Response, HandlerError>> {
        Box::pin(async move {
            let summary = self.process_batch(&invocation.event, invocation.deadline);
            summary.await.map_err(HandlerError::event)?.response()
        })
    }
}
