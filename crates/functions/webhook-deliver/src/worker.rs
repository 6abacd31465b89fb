//! Makes one delivery attempt per message.

use std::collections::HashMap;
use std::time::Duration;

use antumbra_lambda_kit::batch::BatchSummary;
use antumbra_lambda_kit::{Handler, HandlerError, Invocation, Response};
use antumbra_service::clock::time_left;
use antumbra_service::deliveries::{
    Deliver, DeliveryMessage, DeliveryStore, MessageDisposition, MessageVisibility, Sender, Status,
};
use antumbra_service::quarantine::{Quarantine, QuarantinedMessage};
use antumbra_shadow::Timestamp;
use antumbra_wire::events::sqs::{self, QueueMessage, SqsEventError};
use async_trait::async_trait;
use futures_util::{StreamExt as _, stream};

/// Attempts of an invocation at the same time; the largest batch.
const AT_ONCE: usize = 10;
/// Minimum time left to begin an attempt: the sender's timeout and the recording. An attempt that Lambda
/// interrupts counts, but its result is not known.
const MIN_ATTEMPT_TIME: Duration = Duration::from_secs(13);
/// Delay until a message is received again for which no time was left.
const SHORT_RETRY_DELAY: Duration = Duration::from_secs(1);

pub const COUNTERS: &[&str] = &[
    "messages",
    "delivered",
    "held",
    "dropped",
    "postponed",
    "dead",
    "quarantined",
    "disabled",
];

pub struct Worker<L, S, V> {
    deliver: Deliver<L, S>,
    visibility: V,
    quarantine: Quarantine,
}

impl<L: DeliveryStore, S: Sender, V: MessageVisibility> Worker<L, S, V> {
    pub fn new(deliver: Deliver<L, S>, visibility: V, quarantine: Quarantine) -> Worker<L, S, V> {
        Worker {
            deliver,
            visibility,
            quarantine,
        }
    }

    /// Processes one SQS event: its messages at the same time, those of a message group in order. A group stops at the
    /// first message that is not done. Fails as a whole only if it is not an SQS event.
    pub async fn process_batch(
        &self,
        event: &[u8],
        deadline: Timestamp,
    ) -> Result<BatchSummary, SqsEventError> {
        let messages = sqs::read(event)?;
        let mut summary = BatchSummary::new(COUNTERS);
        summary.add("messages", messages.len());
        // Collected before the stream: with a closure in it, the compiler cannot prove that the future is `Send`.
        let groups: Vec<_> = groups(&messages)
            .into_iter()
            .map(|group| self.process_group(group, deadline))
            .collect();
        let mut groups = stream::iter(groups).buffer_unordered(AT_ONCE);
        while let Some(group) = groups.next().await {
            for (counter, count) in group.counters {
                summary.add(counter, count);
            }
            summary.failed.extend(group.failed);
        }
        Ok(summary)
    }

    /// Processes the messages of a group, one after another.
    async fn process_group(
        &self,
        messages: Vec<&QueueMessage>,
        deadline: Timestamp,
    ) -> BatchSummary {
        let mut summary = BatchSummary::default();
        for message in messages {
            let again = match summary.failed.is_empty() {
                true => self.process(message, deadline, &mut summary).await,
                false => Some(SHORT_RETRY_DELAY),
            };
            if let Some(delay) = again {
                self.hide(message, delay).await;
                summary.failed.push(message.id.clone());
            }
        }
        summary
    }

    /// Processes one message. Returns the delay until the message is to be received again; `None` if it is
    /// done.
    async fn process(
        &self,
        message: &QueueMessage,
        deadline: Timestamp,
        summary: &mut BatchSummary,
    ) -> Option<Duration> {
        let delivery = match DeliveryMessage::decode(&message.body) {
            Ok(delivery) => delivery,
            Err(error) => {
                let detail = error.to_string();
                return self
                    .quarantine(message, "NotADelivery", detail, deadline, summary)
                    .await;
            }
        };
        if time_left(self.deliver.now(), deadline) < MIN_ATTEMPT_TIME {
            return Some(SHORT_RETRY_DELAY);
        }
        let processed = self.deliver.process(&delivery).await;
        let disposition = processed.disposition;
        tracing::debug!(id = %delivery.id, ?disposition, "delivery processed");
        summary.add("disabled", usize::from(processed.client_disabled));
        let (counter, again) = match disposition {
            MessageDisposition::Done(Status::Delivered) => ("delivered", None),
            MessageDisposition::Done(Status::Held) => ("held", None),
            MessageDisposition::Done(Status::Dead) => ("dead", None),
            MessageDisposition::Done(Status::Failed | Status::Pending) => ("postponed", None),
            MessageDisposition::Done(Status::Skipped | Status::Superseded) => ("dropped", None),
            MessageDisposition::RetryAfter(delay) => ("postponed", Some(delay)),
            MessageDisposition::Unknown => {
                let detail = "the history has no such delivery".to_owned();
                return self
                    .quarantine(message, "UnknownDelivery", detail, deadline, summary)
                    .await;
            }
        };
        summary.add(counter, 1);
        again
    }

    /// Quarantines a message that no function of ours sent.
    async fn quarantine(
        &self,
        message: &QueueMessage,
        reason: &'static str,
        detail: String,
        deadline: Timestamp,
        summary: &mut BatchSummary,
    ) -> Option<Duration> {
        tracing::error!(message_id = message.id, reason, detail, "message rejected");
        let limit = self.quarantine.text_bytes();
        let rejected = QuarantinedMessage {
            id: message.id.clone(),
            text: message.body[..message.body.floor_char_boundary(limit)].to_owned(),
            source: message.queue_arn.clone(),
            origin: None,
            reason,
            detail,
        };
        let clock = self.deliver.clock();
        let failures = self.quarantine.send(&[rejected], deadline, clock).await;
        if let Some(failure) = failures.first() {
            tracing::warn!(message_id = message.id, failure.reason, "not quarantined");
            return Some(SHORT_RETRY_DELAY);
        }
        summary.add("quarantined", 1);
        None
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

/// The messages of each group, in order. One without a group is alone.
fn groups(messages: &[QueueMessage]) -> Vec<Vec<&QueueMessage>> {
    let mut groups: Vec<Vec<&QueueMessage>> = Vec::new();
    let mut known: HashMap<&str, usize> = HashMap::new();
    for message in messages {
        let alone = groups.len();
        let at = match &message.group {
            Some(group) => *known.entry(group).or_insert(alone),
            None => alone,
        };
        match groups.get_mut(at) {
            Some(group) => group.push(message),
            None => groups.push(vec![message]),
        }
    }
    groups
}

#[async_trait]
impl<L: DeliveryStore, S: Sender, V: MessageVisibility> Handler for Worker<L, S, V> {
    async fn handle(&self, invocation: Invocation) -> Result<Response, HandlerError> {
        let summary = self.process_batch(&invocation.event, invocation.deadline);
        summary.await.map_err(HandlerError::event)?.response()
    }
}

#[cfg(test)]
mod tests {
    use antumbra_wire::events::sqs::Origin;

    use super::*;

    fn message(id: &str, group: Option<&str>) -> QueueMessage {
        QueueMessage {
            id: id.to_owned(),
            receipt: String::new(),
            body: String::new(),
            sent: Timestamp::default(),
            receives: 1,
            group: group.map(str::to_owned),
            sequence: None,
            queue_arn: String::new(),
            origin: Origin {
                id: id.to_owned(),
                sent_milliseconds: 0,
            },
        }
    }

    #[test]
    fn messages_of_a_group_stay_in_order_and_others_are_alone() {
        let messages = [
            message("1", Some("a")),
            message("2", None),
            message("3", Some("b")),
            message("4", Some("a")),
            message("5", None),
        ];
        let groups = groups(&messages);
        let ids = groups
            .iter()
            .map(|group| -> Vec<&str> { group.iter().map(|message| &message.id[..]).collect() });
        let ids: Vec<_> = ids.collect();
        assert_eq!(ids, [vec!["1", "4"], vec!["2"], vec!["3"], vec!["5"]]);
    }
}
