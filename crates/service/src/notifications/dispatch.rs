//! Sends messages to their channels: in order per key, with retries until a deadline.

use std::sync::Arc;

use antumbra_shadow::Timestamp;
use futures_util::StreamExt as _;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;

use super::channel::{Channel, Message, SendError};
use super::schedule::Schedule;
use crate::backoff;
use crate::clock::{Clock, time_left};

/// A message to send, without its content. The content is made when it is sent, so that a large batch is not in memory
/// twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Envelope<'m> {
    /// The index of its channel.
    pub channel: usize,
    /// The key of the item. Messages of one key are sent in order.
    pub key: &'m str,
    /// The size, as [`Message::bytes`] counts it.
    pub bytes: usize,
}

impl Envelope<'_> {
    pub fn new(channel: usize, message: &Message) -> Envelope<'_> {
        Envelope {
            channel,
            key: &message.key,
            bytes: message.bytes(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectedMessage {
    pub index: usize,
    pub reason: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DispatchSummary {
    pub sent: usize,
    /// Number of failed attempts that were retried.
    pub retried: usize,
    pub rejected: Vec<RejectedMessage>,
    /// Indices of messages that were not sent in time, in ascending order.
    pub unsent: Vec<usize>,
    /// Indices of those of them whose last attempt failed.
    pub failed: Vec<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SendFailure {
    /// It can never be sent.
    #[error("{0}")]
    Rejected(String),
    #[error("the deadline passed")]
    Late,
}

/// Sends one message, with retries until the deadline.
pub async fn dispatch_one(
    channel: Arc<dyn Channel>,
    message: Message,
    deadline: Timestamp,
    clock: &dyn Clock,
) -> Result<(), SendFailure> {
    let summary = dispatch(channel, &[message], deadline, clock).await;
    match summary.rejected.into_iter().next() {
        Some(rejected) => Err(SendFailure::Rejected(rejected.reason)),
        None if summary.sent == 1 => Ok(()),
        None => Err(SendFailure::Late),
    }
}

/// Sends messages to one channel, with retries until the deadline: see [`dispatch_with`].
pub async fn dispatch(
    channel: Arc<dyn Channel>,
    messages: &[Message],
    deadline: Timestamp,
    clock: &dyn Clock,
) -> DispatchSummary {
    let envelope = |message| Envelope::new(0, message);
    let envelopes: Vec<Envelope<'_>> = messages.iter().map(envelope).collect();
    let message = |index: usize| messages[index].clone();
    dispatch_with(&[channel], &envelopes, &message, deadline, clock).await
}

/// Sends messages that `message` makes, by their index. All channels work at the same time. At the deadline, calls in
/// flight are abandoned.
pub async fn dispatch_with(
    channels: &[Arc<dyn Channel>],
    envelopes: &[Envelope<'_>],
    message: &(dyn Fn(usize) -> Message + Sync),
    deadline: Timestamp,
    clock: &dyn Clock,
) -> DispatchSummary {
    let mut by_channel: Vec<Vec<usize>> = vec![Vec::new(); channels.len()];
    for (index, envelope) in envelopes.iter().enumerate() {
        by_channel[envelope.channel].push(index);
    }
    let runs = channels
        .iter()
        .zip(&by_channel)
        .filter(|(_, indices)| !indices.is_empty())
        .map(|(channel, indices)| {
            let run = Run {
                channel: channel.as_ref(),
                indices,
                message,
                deadline,
                clock,
            };
            run.send_all(envelopes)
        });
    let mut summary = DispatchSummary::default();
    for one in join_all(runs).await {
        summary.sent += one.sent;
        summary.retried += one.retried;
        summary.rejected.extend(one.rejected);
        summary.unsent.extend(one.unsent);
        summary.failed.extend(one.failed);
    }
    summary.unsent.sort_unstable();
    summary
}

/// The messages of one channel.
struct Run<'d> {
    channel: &'d dyn Channel,
    /// The index of each message among all.
    indices: &'d [usize],
    message: &'d (dyn Fn(usize) -> Message + Sync),
    deadline: Timestamp,
    clock: &'d dyn Clock,
}

impl Run<'_> {
    async fn send_all(self, envelopes: &[Envelope<'_>]) -> DispatchSummary {
        let (clock, deadline) = (self.clock, self.deadline);
        let messages = self.indices.iter().map(|&index| &envelopes[index]);
        let messages = messages.map(|envelope| (envelope.key, envelope.bytes));
        let mut schedule = Schedule::new(messages, self.channel.limits());
        let mut summary = DispatchSummary::default();
        let mut last_failed = vec![false; self.indices.len()];
        let seed = deadline.nanoseconds() as u64 ^ self.indices.len() as u64;
        let mut random = fastrand::Rng::with_seed(seed);
        let concurrency = self.channel.concurrent_calls();
        let mut calls = FuturesUnordered::new();
        let mut pauses = 0;
        // Calls in a row that delivered nothing. When all of them fail, no new ones are started before a pause.
        let mut failed_calls = 0;
        loop {
            while failed_calls < concurrency && calls.len() < concurrency && clock.now() < deadline
            {
                let batch = schedule.next_batch();
                if batch.is_empty() {
                    break;
                }
                calls.push(self.send(batch));
            }
            let Some((batch, results)) = calls.next().await else {
                // Nothing is in flight: the failed messages wait for a retry, or there are none.
                if !schedule.has_failures() || clock.now() >= deadline {
                    break;
                }
                pauses += 1;
                let pause = backoff::delay(pauses, random.f64());
                if clock.now().after(pause) >= deadline {
                    break;
                }
                clock.sleep(pause).await;
                schedule.retry();
                failed_calls = 0;
                continue;
            };
            let (mut delivered, mut failed) = (false, false);
            // Messages without a result are retried.
            let missing = || Err(SendError::Retry("no result".to_owned()));
            let results = results.into_iter().chain(std::iter::repeat_with(missing));
            for (&at, result) in batch.iter().zip(results) {
                match result {
                    Ok(()) => {
                        delivered = true;
                        summary.sent += 1;
                        schedule.settled(at);
                    }
                    Err(SendError::Permanent(reason)) => {
                        let index = self.indices[at];
                        summary.rejected.push(RejectedMessage { index, reason });
                        schedule.settled(at);
                    }
                    Err(SendError::Retry(_)) => {
                        failed = true;
                        last_failed[at] = true;
                        summary.retried += 1;
                        schedule.failed(at);
                    }
                }
            }
            match (delivered, failed) {
                (true, _) => (pauses, failed_calls) = (0, 0),
                (false, true) => failed_calls += 1,
                (false, false) => {}
            }
        }
        for at in schedule.unsettled() {
            summary.unsent.push(self.indices[at]);
            summary
                .failed
                .extend(last_failed[at].then_some(self.indices[at]));
        }
        summary
    }

    /// Makes one call. It is abandoned at the deadline: nothing could be reported after it.
    async fn send(&self, batch: Vec<usize>) -> (Vec<usize>, Vec<Result<(), SendError>>) {
        let messages: Vec<Message> = batch
            .iter()
            .map(|&at| (self.message)(self.indices[at]))
            .collect();
        let time = time_left(self.clock.now(), self.deadline);
        let results = tokio::time::timeout(time, self.channel.send(&messages)).await;
        (batch, results.unwrap_or_default())
    }
}
