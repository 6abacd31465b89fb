//! The function: a turn for every message, side by side, in order where the queue keeps order.

use std::collections::BTreeMap;
use std::time::Duration;

use antumbra_service::clock::time_left;
use antumbra_service::deliveries::{
    Deliver, DeliveryStore, MessageDisposition, MessageVisibility, Sender, decode,
};
use antumbra_shadow::Timestamp;
use antumbra_wire::events::sqs::{self, QueueMessage, SqsEventError};
use futures_util::future::join_all;
use futures_util::{StreamExt as _, stream};

use crate::summary::BatchSummary;

/// Turns of one client that run at once in one call.
const CLIENT_AT_ONCE: usize = 2;
/// What must be left of an invocation's time for a turn to be begun: the sender's time-out and the
/// writing down. A turn that Lambda ends half-way would be lost to the history.
const TURN: Duration = Duration::from_secs(13);
/// How soon a message comes back for whose turn there was no time.
const SOON: Duration = Duration::from_secs(1);

/// Takes the turns of deliveries.
pub struct Worker<L, S, P> {
    deliver: Deliver<L, S>,
    postpone: P,
    turn: Duration,
}

/// What became of one message.
enum Step {
    Turn(MessageDisposition),
    /// Waits for an earlier message of its group, or there was no time.
    NotTaken,
    /// It is no delivery.
    Unreadable,
}

/// Messages that are taken together: how many at once, and whether a failure holds the rest.
struct Lane {
    messages: Vec<usize>,
    at_once: usize,
    ordered: bool,
}

impl<L: DeliveryStore, S: Sender, P: MessageVisibility> Worker<L, S, P> {
    /// Delivers, and tells the queues when to hand over again what failed.
    pub fn new(deliver: Deliver<L, S>, postpone: P) -> Worker<L, S, P> {
        Worker {
            deliver,
            postpone,
            turn: TURN,
        }
    }

    /// Begins no turn with less time left than this.
    #[must_use]
    pub fn with_turn(self, turn: Duration) -> Worker<L, S, P> {
        Worker { turn, ..self }
    }

    /// Handles one event.
    ///
    /// Only an event that is none of a queue is an error; it fails as a whole.
    pub async fn handle(
        &self,
        event: &[u8],
        deadline: Timestamp,
    ) -> Result<BatchSummary, SqsEventError> {
        let messages = sqs::read(event)?;
        let mut steps: Vec<Step> = messages.iter().map(|_| Step::NotTaken).collect();
        let lanes = lanes(&messages);
        let done = lanes.iter().map(|lane| self.run(lane, &messages, deadline));
        for (index, step) in join_all(done).await.into_iter().flatten() {
            steps[index] = step;
        }
        let mut handled = BatchSummary {
            messages: messages.len(),
            ..BatchSummary::default()
        };
        for (message, step) in messages.iter().zip(&steps) {
            let again = match step {
                Step::Turn(settled) => {
                    handled.count(*settled);
                    match settled {
                        MessageDisposition::Done(_) => None,
                        MessageDisposition::Again(by) => Some(*by),
                        // The next receive is one too many, which is the queue's to notice.
                        MessageDisposition::Dead => Some(Duration::ZERO),
                    }
                }
                Step::NotTaken => Some(SOON),
                Step::Unreadable => {
                    handled.unreadable += 1;
                    Some(Duration::ZERO)
                }
            };
            if let Some(by) = again {
                self.hide(message, by).await;
                handled.failed.push(message.id.to_string());
            }
        }
        Ok(handled)
    }

    async fn run(
        &self,
        lane: &Lane,
        messages: &[QueueMessage<'_>],
        deadline: Timestamp,
    ) -> Vec<(usize, Step)> {
        if !lane.ordered {
            let turns = lane.messages.iter();
            let turns: Vec<_> = turns
                .map(|&index| self.take_at(index, messages, deadline))
                .collect();
            return stream::iter(turns)
                .buffer_unordered(lane.at_once)
                .collect()
                .await;
        }
        let mut steps = Vec::new();
        for &index in &lane.messages {
            let step = self.take(&messages[index], deadline).await;
            let held = !matches!(step, Step::Turn(MessageDisposition::Done(_)));
            steps.push((index, step));
            if held {
                break;
            }
        }
        steps
    }

    async fn take_at(
        &self,
        index: usize,
        messages: &[QueueMessage<'_>],
        deadline: Timestamp,
    ) -> (usize, Step) {
        (index, self.take(&messages[index], deadline).await)
    }

    async fn take(&self, message: &QueueMessage<'_>, deadline: Timestamp) -> Step {
        let delivery = match decode(&message.body) {
            Ok(delivery) => delivery,
            Err(fault) => {
                tracing::error!(message = &*message.id, %fault, "a message is no delivery");
                return Step::Unreadable;
            }
        };
        if time_left(self.deliver.now(), deadline) < self.turn {
            return Step::NotTaken;
        }
        let settled = self.deliver.turn(&delivery, message.receives).await;
        tracing::debug!(id = %delivery.id, turn = message.receives, ?settled, "a turn was taken");
        Step::Turn(settled)
    }

    /// A message that cannot be hidden comes back when the queue's own time for it ends.
    async fn hide(&self, message: &QueueMessage<'_>, by: Duration) {
        let hidden = self
            .postpone
            .postpone(&message.queue_arn, &message.receipt, by)
            .await;
        if let Err(reason) = hidden {
            tracing::warn!(
                message = &*message.id,
                reason,
                "not postponed as it should be"
            );
        }
    }
}

/// One lane per group of an ordered queue; of any other one per client, so that many messages of one
/// client do not all wait at its endpoint.
fn lanes(messages: &[QueueMessage<'_>]) -> Vec<Lane> {
    let mut lanes: BTreeMap<(bool, String), Vec<usize>> = BTreeMap::new();
    for (index, message) in messages.iter().enumerate() {
        let lane = match &message.group {
            Some(group) => (true, group.to_string()),
            None => (false, client_of(&message.body)),
        };
        lanes.entry(lane).or_default().push(index);
    }
    let lane = |((ordered, _), messages)| Lane {
        messages,
        at_once: CLIENT_AT_ONCE,
        ordered,
    };
    lanes.into_iter().map(lane).collect()
}

fn client_of(body: &str) -> String {
    decode(body)
        .map(|delivery| delivery.id.client().to_string())
        .unwrap_or_default()
}
