//! Sends every message to its channel, in order per key, with retries until the deadline.

use antumbra_shadow::Timestamp;
use futures_util::future::join_all;
use std::sync::Arc;

use super::channel::{Channel, Message, SendError};
use super::schedule::Schedule;
use crate::backoff;
use crate::clock::{Clock, time_left};

/// Messages to send, by position. Messages are built when they are sent, so that a large batch is not in memory
/// twice.
pub trait Outbox: Sync {
    /// Returns the number of messages.
    fn len(&self) -> usize;

    /// Returns whether there are no messages.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the channel of a message.
    fn channel(&self, index: usize) -> usize;

    /// Returns the key of the item that changed.
    fn key(&self, index: usize) -> &str;

    /// Returns the size of a message, as [`Message::bytes`] does.
    fn bytes(&self, index: usize) -> usize;

    /// Builds a message.
    fn message(&self, index: usize) -> Message;
}

/// A message and the channel it goes to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct ChannelMessage {
    pub channel: usize,
    pub message: Message,
}

impl Outbox for Vec<ChannelMessage> {
    fn len(&self) -> usize {
        Vec::len(self)
    }

    fn channel(&self, index: usize) -> usize {
        self[index].channel
    }

    fn key(&self, index: usize) -> &str {
        &self[index].message.key
    }

    fn bytes(&self, index: usize) -> usize {
        self[index].message.bytes()
    }

    fn message(&self, index: usize) -> Message {
        self[index].message.clone()
    }
}

/// A message that can never be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectedMessage {
    /// Position among the messages given to [`dispatch`].
    pub index: usize,
    /// Reason.
    pub reason: String,
}

/// Summary of a dispatch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DispatchSummary {
    /// Number of sent messages.
    pub sent: usize,
    /// Number of retries.
    pub retried: usize,
    /// Messages that can never be sent.
    pub refused: Vec<RejectedMessage>,
    /// Positions of messages that were not sent in time, ascending.
    pub unsent: Vec<usize>,
}

/// Error of a single message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SendFailure {
    /// The message can never be sent.
    #[error("{0}")]
    Rejected(String),
    /// The message was not sent in time.
    #[error("there was no time left")]
    Late,
}

/// Sends one message, with retries until the deadline.
pub async fn dispatch_one(
    channel: Arc<dyn Channel>,
    message: Message,
    deadline: Timestamp,
    clock: &dyn Clock,
) -> Result<(), SendFailure> {
    let outgoing = vec![ChannelMessage {
        channel: 0,
        message,
    }];
    let done = dispatch(&[channel], &outgoing, deadline, clock).await;
    match done.refused.into_iter().next() {
        Some(refused) => Err(SendFailure::Rejected(refused.reason)),
        None if done.sent == 1 => Ok(()),
        None => Err(SendFailure::Late),
    }
}

/// Sends all messages, channels side by side. At the deadline it gives up the rest, including calls in progress.
pub async fn dispatch(
    channels: &[Arc<dyn Channel>],
    outbox: &impl Outbox,
    deadline: Timestamp,
    clock: &dyn Clock,
) -> DispatchSummary {
    let mut of_channel: Vec<Vec<usize>> = vec![Vec::new(); channels.len()];
    for index in 0..outbox.len() {
        of_channel[outbox.channel(index)].push(index);
    }
    let runs = channels
        .iter()
        .zip(&of_channel)
        .filter(|(_, indices)| !indices.is_empty())
        .map(|(channel, indices)| run(channel.as_ref(), outbox, indices, deadline, clock));
    let mut all = DispatchSummary::default();
    for one in join_all(runs).await {
        all.sent += one.sent;
        all.retried += one.retried;
        all.refused.extend(one.refused);
        all.unsent.extend(one.unsent);
    }
    all.unsent.sort_unstable();
    all
}

async fn run(
    channel: &dyn Channel,
    outbox: &impl Outbox,
    indices: &[usize],
    deadline: Timestamp,
    clock: &dyn Clock,
) -> DispatchSummary {
    let limits = channel.limits();
    let mut schedule = Schedule::new(
        indices
            .iter()
            .map(|&index| (outbox.key(index), outbox.bytes(index))),
        limits,
    );
    let mut done = DispatchSummary::default();
    let mut random = fastrand::Rng::with_seed(deadline.nanoseconds() as u64 ^ indices.len() as u64);
    let mut failures = 0;
    while clock.now() < deadline {
        let batch = schedule.next_batch();
        if batch.is_empty() && !schedule.has_failures() {
            break;
        }
        let messages: Vec<Message> = batch
            .iter()
            .map(|&at| outbox.message(indices[at]))
            .collect();
        let answers = if messages.is_empty() {
            Vec::new()
        } else {
            // A call in progress is given up at the deadline, so that the caller can still report failures.
            let time = time_left(clock.now(), deadline);
            let answers = tokio::time::timeout(time, channel.send(&messages)).await;
            answers.unwrap_or_default()
        };
        let mut arrived = false;
        // Messages without a result are unsent.
        let missing = || Err(SendError::Retry("no answer".to_owned()));
        for (&at, answer) in batch
            .iter()
            .zip(answers.into_iter().chain(std::iter::repeat_with(missing)))
        {
            match answer {
                Ok(()) => {
                    arrived = true;
                    done.sent += 1;
                    schedule.settled(at);
                }
                Err(SendError::Permanent(reason)) => {
                    done.refused.push(RejectedMessage {
                        index: indices[at],
                        reason,
                    });
                    schedule.settled(at);
                }
                Err(SendError::Retry(_)) => {
                    done.retried += 1;
                    schedule.failed(at);
                }
            }
        }
        failures = if arrived { 0 } else { failures };
        // Other keys continue while one waits; if nothing gets through, all wait.
        if schedule.has_failures() && !arrived {
            failures += 1;
            let pause = backoff::delay(failures, random.f64());
            if clock.now().after(pause) >= deadline {
                break;
            }
            clock.sleep(pause).await;
            schedule.retry();
        }
    }
    done.unsent = schedule.unsettled().map(|at| indices[at]).collect();
    done
}
