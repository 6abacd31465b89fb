//! The queues the product uses, as data, and making those that are missing.

use antumbra_service::deliveries::SPARE_RECEIVES;
use aws_sdk_sqs::{Client, error::DisplayErrorContext, types::QueueAttributeName};

use super::queue_arn;

/// One queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// The name on AWS and here. A FIFO queue's ends in `.fifo`.
    pub name: &'static str,
    /// How long a received message stays hidden.
    pub visibility_seconds: u32,
    /// Where a message goes after so many receives.
    pub dead_letters: Option<(&'static str, u32)>,
}

/// Every queue, those that others send their dead letters to first.
pub const QUEUES: [Queue; 9] = [
    queue("antumbra-quarantine", None),
    queue("antumbra-undeliverable", None),
    queue("antumbra-inbound", Some(("antumbra-quarantine", 5))),
    queue("antumbra-outbound", None),
    queue("antumbra-signals", Some(("antumbra-quarantine", 5))),
    queue("antumbra-deliveries-dead", None),
    queue("antumbra-deliveries-dead.fifo", None),
    deliveries("antumbra-deliveries", "antumbra-deliveries-dead"),
    deliveries("antumbra-deliveries.fifo", "antumbra-deliveries-dead.fifo"),
];

const fn queue(name: &'static str, dead_letters: Option<(&'static str, u32)>) -> Queue {
    Queue {
        name,
        // Six times the ten seconds that a function may take.
        visibility_seconds: 60,
        dead_letters,
    }
}

/// A queue whose function tells it when to hand over again what failed: ten turns each, and some receives
/// to write down what became of the last.
const fn deliveries(name: &'static str, dead: &'static str) -> Queue {
    Queue {
        // Six times the thirty seconds that the function may take.
        visibility_seconds: 180,
        ..queue(name, Some((dead, 10 + SPARE_RECEIVES)))
    }
}

/// A queue could not be made.
#[derive(Debug, thiserror::Error)]
#[error("queue {queue}: {reason}")]
pub struct QueueError {
    queue: &'static str,
    reason: String,
}

impl Queue {
    /// Makes the queue if it is missing; a second call changes nothing.
    pub async fn ensure(&self, client: &Client) -> Result<(), QueueError> {
        let mut request = client.create_queue().queue_name(self.name).attributes(
            QueueAttributeName::VisibilityTimeout,
            self.visibility_seconds.to_string(),
        );
        if let Some((target, receives)) = self.dead_letters {
            // The count is a number: AWS also takes a string, the emulator does not.
            let policy = serde_json::json!({
                "deadLetterTargetArn": queue_arn(target),
                "maxReceiveCount": receives,
            });
            request = request.attributes(QueueAttributeName::RedrivePolicy, policy.to_string());
        }
        if self.name.ends_with(".fifo") {
            request = request.attributes(QueueAttributeName::FifoQueue, "true");
        }
        request.send().await.map(drop).map_err(|error| QueueError {
            queue: self.name,
            reason: DisplayErrorContext(error).to_string(),
        })
    }
}

/// Makes all queues.
pub async fn ensure_all(client: &Client) -> Result<(), QueueError> {
    for queue in &QUEUES {
        queue.ensure(client).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use antumbra_service::deliveries::Policy;

    use super::*;

    #[test]
    fn a_delivery_is_received_oftener_than_it_has_turns() {
        let of = |name: &str| QUEUES.iter().find(|queue| queue.name == name);
        for name in ["antumbra-deliveries", "antumbra-deliveries.fifo"] {
            let (_, receives) = of(name).unwrap().dead_letters.unwrap();
            assert_eq!(receives, Policy::default().turns + SPARE_RECEIVES);
        }
    }

    #[test]
    fn dead_letters_go_to_a_queue_that_is_made_before() {
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
