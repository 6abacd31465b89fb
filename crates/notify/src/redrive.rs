//! Redrive: moves failed messages back to their source.
//!
//! [`RedriveRoute::of`] decides (pure); [`redrive`] sends each message and then deletes it, so that a crash in between
//! sends it twice and loses nothing.

mod route;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use antumbra_service::clock::Clock;
use antumbra_service::redrive::{
    FailedMessage, FailedQueue, QueueError, RecordRange, RecordSource, UpdateHandler,
};
use antumbra_shadow::Timestamp;
use futures_util::future::join_all;

use crate::{ChannelFactory, Listener, StoredNotification};
pub use route::{RedriveRoute, reason};

/// Timeout of one message.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Characters of an error in the summary.
const ERROR_CHARS: usize = 200;

#[derive(Debug, Clone)]
pub struct RedriveOptions {
    pub limit: usize,
    /// Queues whose messages are quarantined: names, URLs or ARNs. A quarantined message goes back to none but these.
    pub sources: Vec<String>,
    /// Queue for messages of unknown source.
    pub to: Option<String>,
    /// Delete failed MQTT requests instead of leaving them in the queue.
    pub drop_requests: bool,
}

impl Default for RedriveOptions {
    fn default() -> RedriveOptions {
        RedriveOptions {
            limit: 1000,
            sources: vec!["antumbra-inbound".to_owned(), "antumbra-signals".to_owned()],
            to: None,
            drop_requests: false,
        }
    }
}

#[derive(Debug, Default)]
pub struct RedriveSummary {
    /// Counts by reason, description of the route, and outcome.
    pub rows: BTreeMap<(String, String, RedriveOutcome), usize>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum RedriveOutcome {
    Planned,
    Moved,
    Deleted,
    /// It stays in the queue.
    Left,
    /// It stays in the queue, with the reason.
    Failed(String),
}

impl RedriveOutcome {
    fn leaves_queue(&self) -> bool {
        matches!(self, RedriveOutcome::Moved | RedriveOutcome::Deleted)
    }
}

impl RedriveSummary {
    fn count(&mut self, message: &FailedMessage, route: &RedriveRoute, outcome: RedriveOutcome) {
        let row = (reason(message), route.to_string(), outcome);
        *self.rows.entry(row).or_default() += 1;
    }

    /// Returns the number of messages that could not be moved.
    pub fn failed(&self) -> usize {
        let rows = self.rows.iter();
        let failed =
            rows.filter(|((_, _, outcome), _)| matches!(outcome, RedriveOutcome::Failed(_)));
        failed.map(|(_, count)| count).sum()
    }
}

/// Receives up to `limit` messages and makes them visible again.
pub async fn peek(
    queue: &impl FailedQueue,
    limit: usize,
) -> Result<Vec<FailedMessage>, QueueError> {
    let mut messages = Vec::new();
    let result = loop {
        match queue.receive().await {
            Ok(received) if received.is_empty() => break Ok(()),
            Ok(received) => messages.extend(received),
            Err(error) => break Err(error),
        }
        if messages.len() >= limit {
            break Ok(());
        }
    };
    let receipts: Vec<String> = messages.iter().map(|one| one.receipt.clone()).collect();
    queue.release(&receipts).await?;
    result?;
    messages.truncate(limit);
    Ok(messages)
}

/// Summarizes what [`redrive`] would do.
pub fn plan(messages: &[FailedMessage], options: &RedriveOptions) -> RedriveSummary {
    let mut summary = RedriveSummary::default();
    for message in messages {
        let route = RedriveRoute::of(message, options);
        summary.count(message, &route, options.plan(&route));
    }
    summary
}

impl RedriveOptions {
    fn plan(&self, route: &RedriveRoute) -> RedriveOutcome {
        match route {
            RedriveRoute::Request if self.drop_requests => RedriveOutcome::Deleted,
            RedriveRoute::Request | RedriveRoute::None(_) => RedriveOutcome::Left,
            _ => RedriveOutcome::Planned,
        }
    }
}

/// Moves the messages that were sent before `start`: a message that fails again comes back at once, and is not moved a
/// second time. `progress` gets the number of messages of each step.
pub async fn redrive(
    queue: &impl FailedQueue,
    options: &RedriveOptions,
    resender: Option<&Resender>,
    start: Timestamp,
    progress: impl Fn(usize),
) -> Result<RedriveSummary, QueueError> {
    // Receipts by id of the messages that stay.
    let mut left = BTreeMap::new();
    let result = move_all(queue, options, resender, start, progress, &mut left).await;
    let receipts: Vec<String> = left.into_values().collect();
    queue.release(&receipts).await?;
    result
}

async fn move_all(
    queue: &impl FailedQueue,
    options: &RedriveOptions,
    resender: Option<&Resender>,
    start: Timestamp,
    progress: impl Fn(usize),
    left: &mut BTreeMap<String, String>,
) -> Result<RedriveSummary, QueueError> {
    let start = start.nanoseconds() / 1_000_000;
    let mut summary = RedriveSummary::default();
    let mut blocked_groups: HashSet<String> = HashSet::new();
    let mut count = 0;
    loop {
        let received = queue.receive().await?;
        let is_known = |message: &FailedMessage| left.contains_key(&message.id);
        let only_known = received.iter().all(is_known);
        // In a FIFO queue a message that stays blocks the others of its group.
        let at_once = if queue.is_fifo() {
            1
        } else {
            received.len().max(1)
        };
        let mut received = received.into_iter().peekable();
        while received.peek().is_some() {
            let mut chosen = Vec::new();
            for message in received.by_ref().take(at_once) {
                let group = message.group.as_ref().filter(|_| queue.is_fifo());
                let is_blocked = group.is_some_and(|group| blocked_groups.contains(group));
                let was_sent_before = i128::from(message.sent_milliseconds) < start;
                let is_candidate = was_sent_before && !left.contains_key(&message.id);
                if is_candidate && !is_blocked && count < options.limit {
                    count += 1;
                    chosen.push(message);
                } else {
                    left.insert(message.id, message.receipt);
                }
            }
            let moving = chosen
                .iter()
                .map(|one| move_one(queue, options, resender, one));
            for (message, moved) in chosen.iter().zip(join_all(moving).await) {
                let (route, outcome) = moved?;
                if !outcome.leaves_queue() {
                    blocked_groups.extend(message.group.clone());
                    left.insert(message.id.clone(), message.receipt.clone());
                }
                summary.count(message, &route, outcome);
            }
            progress(chosen.len());
        }
        if only_known || count >= options.limit {
            return Ok(summary);
        }
    }
}

/// Sends a message and then deletes it.
async fn move_one(
    queue: &impl FailedQueue,
    options: &RedriveOptions,
    resender: Option<&Resender>,
    message: &FailedMessage,
) -> Result<(RedriveRoute, RedriveOutcome), QueueError> {
    let route = RedriveRoute::of(message, options);
    let outcome = match options.plan(&route) {
        RedriveOutcome::Planned => match send(queue, resender, message, &route).await {
            Ok(()) => RedriveOutcome::Moved,
            Err(error) => RedriveOutcome::Failed(error.chars().take(ERROR_CHARS).collect()),
        },
        other => other,
    };
    if outcome.leaves_queue() {
        queue.delete(&message.receipt).await?;
    }
    Ok((route, outcome))
}

async fn send(
    queue: &impl FailedQueue,
    resender: Option<&Resender>,
    message: &FailedMessage,
    route: &RedriveRoute,
) -> Result<(), String> {
    match (route, resender) {
        (RedriveRoute::Queue(to), _) => {
            let message = route::restored(message);
            let sent = queue.send(&message, to).await;
            sent.map_err(|error| error.to_string())
        }
        (RedriveRoute::Registration(notification), Some(resender)) => {
            resender.notification(notification).await
        }
        (RedriveRoute::Stream(range), Some(resender)) => resender.records(range).await,
        (RedriveRoute::Update(event), Some(resender)) => {
            let deadline = resender.clock.now().after(TIMEOUT);
            resender.updates.update(event.as_bytes(), deadline).await
        }
        _ => Err("it arrived during the redrive; run the command again".to_owned()),
    }
}

/// Sends notifications to the targets of their registrations, records of a stream to the listener, and makes updates.
pub struct Resender {
    pub channels: Box<dyn ChannelFactory>,
    pub listener: Listener,
    pub records: Box<dyn RecordSource>,
    pub updates: Box<dyn UpdateHandler>,
    pub clock: Arc<dyn Clock>,
}

impl Resender {
    async fn notification(&self, notification: &StoredNotification) -> Result<(), String> {
        let deadline = self.clock.now().after(TIMEOUT);
        let registrations = self.listener.registrations();
        let sent = notification.send(registrations, &*self.channels, deadline, &*self.clock);
        sent.await.map_err(|error| error.to_string())
    }

    /// Passes the records to the listener. New undeliverable notifications go to the undeliverable queue again.
    async fn records(&self, range: &RecordRange) -> Result<(), String> {
        for event in self.records.events(range).await? {
            let deadline = self.clock.now().after(TIMEOUT);
            let summary = self.listener.handle(&event, deadline).await;
            let summary = summary.map_err(|error| error.to_string())?;
            if let Some(record) = summary.resume_at {
                return Err(format!(
                    "not all notifications from record {record} on could be sent"
                ));
            }
        }
        Ok(())
    }
}
