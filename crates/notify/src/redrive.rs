//! Redrive: moves failed messages back to their source.
//!
//! [`RedriveRoute::of`] decides (pure); [`redrive`] sends each message and then deletes it, so that a crash in between
//! sends it twice and loses nothing.

mod route;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use antumbra_registration::Registrations;
use antumbra_service::clock::Clock;
use antumbra_service::redrive::{
    FailedMessage, FailedQueue, QueueError, RecordRange, RecordSource,
};
use antumbra_shadow::Timestamp;

use crate::{ChannelFactory, Listener, StoredNotification};
pub use route::{RedriveRoute, reason};

/// Timeout of one message.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Characters of an error in the summary.
const ERROR_CHARS: usize = 200;

/// Options of a redrive.
#[derive(Debug, Clone)]
pub struct RedriveOptions {
    /// Maximum number of messages.
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

/// Number of messages by reason, route and outcome.
#[derive(Debug, Default)]
pub struct RedriveSummary {
    /// Counts by reason, description of the route, and outcome.
    pub rows: BTreeMap<(String, String, RedriveOutcome), usize>,
}

/// The outcome of a message.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum RedriveOutcome {
    Planned,
    Moved,
    Deleted,
    /// It stays in the queue.
    Left,
    /// It stays in the queue, with the reason.
    Failed(String),
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
/// second time. `progress` gets the number of messages so far.
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
        for message in received {
            let group = message.group.clone().filter(|_| queue.is_fifo());
            let is_blocked = group.as_ref().is_some_and(|of| blocked_groups.contains(of));
            let is_new =
                i128::from(message.sent_milliseconds) < start && !left.contains_key(&message.id);
            if !is_new || is_blocked || count >= options.limit {
                left.insert(message.id, message.receipt);
                continue;
            }
            count += 1;
            let route = RedriveRoute::of(&message, options);
            let outcome = match options.plan(&route) {
                RedriveOutcome::Planned => match send(queue, resender, &message, &route).await {
                    Ok(()) => RedriveOutcome::Moved,
                    Err(error) => RedriveOutcome::Failed(error.chars().take(ERROR_CHARS).collect()),
                },
                other => other,
            };
            let is_done = matches!(outcome, RedriveOutcome::Moved | RedriveOutcome::Deleted);
            summary.count(&message, &route, outcome);
            if is_done {
                queue.delete(&message.receipt).await?;
            } else {
                blocked_groups.extend(group);
                left.insert(message.id, message.receipt);
            }
            progress(count);
        }
        if only_known || count >= options.limit {
            return Ok(summary);
        }
    }
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
        _ => Err("it arrived during the redrive; run the command again".to_owned()),
    }
}

/// Sends notifications to the targets of their registrations, and records of a stream to the listener.
#[allow(missing_docs)]
pub struct Resender {
    pub registrations: Registrations,
    pub channels: Box<dyn ChannelFactory>,
    pub listener: Listener,
    pub records: Box<dyn RecordSource>,
    pub clock: Arc<dyn Clock>,
}

impl Resender {
    async fn notification(&self, notification: &StoredNotification) -> Result<(), String> {
        let deadline = self.clock.now().after(TIMEOUT);
        let sent = notification.send(&self.registrations, &*self.channels, deadline, &*self.clock);
        sent.await.map_err(|error| error.to_string())
    }

    /// Passes the records to the listener. New undeliverable notifications go to the undeliverable queue again.
    async fn records(&self, range: &RecordRange) -> Result<(), String> {
        for event in self.records.events(range).await? {
            let deadline = self.clock.now().after(TIMEOUT);
            let handled = self.listener.handle(&event, deadline).await;
            let handled = handled.map_err(|error| error.to_string())?;
            if let Some(record) = handled.resume_at {
                return Err(format!(
                    "not all notifications from record {record} on could be sent"
                ));
            }
        }
        Ok(())
    }
}
