//! The queues of the product, and their creation.

use std::collections::HashMap;

use antumbra_lambda_kit::functions::queues::{
    DELIVERIES, DELIVERIES_DEAD, DELIVERIES_DEAD_FIFO, DELIVERIES_FIFO, INBOUND, OUTBOUND,
    QUARANTINE, SIGNALS, SPILL, UNDELIVERABLE,
};
use aws_sdk_sqs::operation::create_queue::CreateQueueError;
use aws_sdk_sqs::{Client, error::DisplayErrorContext, types::QueueAttributeName};

use super::queue_arn;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Name; that of a FIFO queue ends in `.fifo`.
    pub name: &'static str,
    pub visibility_seconds: u32,
    /// Dead-letter queue and maximum receive count.
    pub dead_letters: Option<(&'static str, u32)>,
}

/// Throttled invocations count as receives: an hour of them must not move good messages to the quarantine.
const MAX_RECEIVES: u32 = 60;

/// All queues; dead-letter queues come before the queues that use them.
pub const QUEUES: [Queue; 10] = [
    queue(QUARANTINE, None),
    queue(UNDELIVERABLE, None),
    // No dead-letter queue: the listener gives up a message when it is days old.
    Queue {
        visibility_seconds: 180,
        ..queue(SPILL, None)
    },
    queue(INBOUND, Some((QUARANTINE, MAX_RECEIVES))),
    queue(OUTBOUND, None),
    queue(SIGNALS, Some((QUARANTINE, MAX_RECEIVES))),
    queue(DELIVERIES_DEAD, None),
    queue(DELIVERIES_DEAD_FIFO, None),
    deliveries(DELIVERIES, DELIVERIES_DEAD),
    deliveries(DELIVERIES_FIFO, DELIVERIES_DEAD_FIFO),
];

const fn queue(name: &'static str, dead_letters: Option<(&'static str, u32)>) -> Queue {
    Queue {
        name,
        // Six times the function's timeout, as AWS recommends.
        visibility_seconds: 60,
        dead_letters,
    }
}

/// Receives after which a message of a deliveries queue becomes a dead letter: the most that SQS allows. The store
/// counts attempts and the function sends dead letters; receives of throttled invocations must not cost any.
const DELIVERY_RECEIVES: u32 = 1000;

/// A queue whose function sets when a message returns.
const fn deliveries(name: &'static str, dead: &'static str) -> Queue {
    Queue {
        // Six times the function's timeout.
        visibility_seconds: 180,
        ..queue(name, Some((dead, DELIVERY_RECEIVES)))
    }
}

#[derive(Debug, thiserror::Error)]
#[error("queue {queue}: {reason}")]
pub struct QueueError {
    queue: &'static str,
    reason: String,
}

impl Queue {
    /// Creates the queue if it is missing, and gives one that exists the attributes of this version.
    pub async fn ensure(&self, client: &Client) -> Result<(), QueueError> {
        let attributes = self.attributes();
        let mut request = client.create_queue().queue_name(self.name);
        if self.name.ends_with(".fifo") {
            request = request.attributes(QueueAttributeName::FifoQueue, "true");
        }
        for (name, value) in &attributes {
            request = request.attributes(name.clone(), value);
        }
        let created = request.send().await;
        let exists = created
            .as_ref()
            .err()
            .and_then(|error| error.as_service_error());
        if !exists.is_some_and(CreateQueueError::is_queue_name_exists) {
            return created.map(drop).map_err(|error| self.failed(error));
        }
        let url = client.get_queue_url().queue_name(self.name).send().await;
        let url = url.map_err(|error| self.failed(error))?;
        let request = client.set_queue_attributes().set_queue_url(url.queue_url);
        let changed = request.set_attributes(Some(attributes)).send().await;
        changed.map(drop).map_err(|error| self.failed(error))
    }

    fn attributes(&self) -> HashMap<QueueAttributeName, String> {
        let visibility = self.visibility_seconds.to_string();
        let mut attributes = HashMap::from([(QueueAttributeName::VisibilityTimeout, visibility)]);
        if let Some((target, receives)) = self.dead_letters {
            let policy = serde_json::json!({
                "deadLetterTargetArn": queue_arn(target),
                "maxReceiveCount": receives,
            });
            attributes.insert(QueueAttributeName::RedrivePolicy, policy.to_string());
        }
        attributes
    }

    fn failed(&self, error: impl std::error::Error) -> QueueError {
        QueueError {
            queue: self.name,
            reason: DisplayErrorContext(error).to_string(),
        }
    }
}

pub async fn ensure_all(client: &Client) -> Result<(), QueueError> {
    for queue in &QUEUES {
        queue.ensure(client).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dead_letter_queues_are_created_first() {
        for (index, queue) in QUEUES.iter().enumerate() {
            if let Some((target, _)) = queue.dead_letters {
                assert!(
                    QUEUES[..index].iter().any(|q| q.name == target),
                    "{}",
                    queue.name
                );
            }
        }
    }
}
