//! Redrive: moves failed messages back to their source.
//!
//! [`RedriveRoute::of`] decides (pure); [`redrive`] sends each message and then deletes it, so that a crash in between
//! sends it twice and loses nothing.

mod route;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use antumbra_service::api;
use antumbra_service::clock::Clock;
use antumbra_service::redrive::{
    DeadLetterHandler, FailedMessage, FailedQueue, QueueError, RecordRange, RecordSource,
    UpdateHandler,
};
use antumbra_shadow::Timestamp;
use async_trait::async_trait;
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
    /// Id of the only message to redrive; `None` for all.
    pub only: Option<String>,
    /// The [`reason`] of the messages to redrive; `None` for all.
    pub reason: Option<String>,
    /// Queues whose messages are quarantined: names, URLs or ARNs. A quarantined message goes back to none but these.
    pub sources: Vec<String>,
    /// Queue for messages of unknown source.
    pub to: Option<String>,
    /// Delete failed MQTT requests instead of leaving them in the queue.
    pub drop_requests: bool,
    /// The queue holds dead webhook deliveries. The caller that names the queue says so; senders do not decide it.
    pub holds_deliveries: bool,
    /// Queue from which the stream listener takes notifications and positions of records; `None` to send them from here.
    pub listener_queue: Option<String>,
}

impl Default for RedriveOptions {
    fn default() -> RedriveOptions {
        RedriveOptions {
            limit: 1000,
            only: None,
            reason: None,
            sources: vec!["antumbra-inbound".to_owned(), "antumbra-signals".to_owned()],
            to: None,
            drop_requests: false,
            holds_deliveries: false,
            listener_queue: None,
        }
    }
}

#[derive(Debug, Default)]
pub struct RedriveSummary {
    /// Counts by reason, description of the route, and outcome.
    pub rows: BTreeMap<(String, String, RedriveOutcome), usize>,
    /// The redrive ended before it had received every message.
    pub has_more: bool,
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
    pub fn as_str(&self) -> &'static str {
        match self {
            RedriveOutcome::Planned => "planned",
            RedriveOutcome::Moved => "moved",
            RedriveOutcome::Deleted => "deleted",
            RedriveOutcome::Left => "left",
            RedriveOutcome::Failed(_) => "failed",
        }
    }

    fn leaves_queue(&self) -> bool {
        matches!(self, RedriveOutcome::Moved | RedriveOutcome::Deleted)
    }
}

impl RedriveSummary {
    fn count(&mut self, message: &FailedMessage, route: &RedriveRoute, outcome: RedriveOutcome) {
        let row = (reason(message), route.to_string(), outcome);
        *self.rows.entry(row).or_default() += 1;
    }

    /// Adds the results for another queue.
    pub fn add(&mut self, other: RedriveSummary) {
        self.has_more |= other.has_more;
        for (row, count) in other.rows {
            *self.rows.entry(row).or_default() += count;
        }
    }

    /// Returns the number of messages that could not be moved.
    pub fn failed(&self) -> usize {
        let rows = self.rows.iter();
        let failed =
            rows.filter(|((_, _, outcome), _)| matches!(outcome, RedriveOutcome::Failed(_)));
        failed.map(|(_, count)| count).sum()
    }
}

impl From<RedriveSummary> for api::RedriveResults {
    fn from(summary: RedriveSummary) -> api::RedriveResults {
        let rows = summary.rows.into_iter();
        let results = rows.map(|((reason, route, outcome), count)| api::RedriveResult {
            count,
            reason,
            route,
            outcome: outcome.as_str(),
            error: match outcome {
                RedriveOutcome::Failed(error) => Some(error),
                _ => None,
            },
        });
        api::RedriveResults {
            results: results.collect(),
            has_more: summary.has_more,
        }
    }
}

/// Describes a message of the named queue.
pub fn describe(
    message: FailedMessage,
    queue: &str,
    options: &RedriveOptions,
) -> api::FailedMessage {
    let sent = Timestamp::from_nanoseconds(i128::from(message.sent_milliseconds) * 1_000_000);
    api::FailedMessage {
        queue: queue.to_owned(),
        reason: reason(&message),
        detail: message.attribute("detail").map(str::to_owned),
        route: RedriveRoute::of(&message, options).to_string(),
        sent_at: sent.into(),
        id: message.id,
        body: message.body,
    }
}

/// Messages that were received and made visible again.
#[derive(Debug)]
pub struct Peeked {
    pub messages: Vec<FailedMessage>,
    /// The queue may hold others.
    pub has_more: bool,
}

/// Receives messages, up to `limit` and to `bytes` of bodies but at least one, and makes them visible again.
pub async fn peek(
    queue: &impl FailedQueue,
    limit: usize,
    bytes: usize,
) -> Result<Peeked, QueueError> {
    let (mut messages, mut receipts) = (Vec::new(), Vec::new());
    let (mut size, mut is_full) = (0, limit == 0);
    let result = loop {
        if is_full {
            break Ok(true);
        }
        let received = match queue.receive_counted().await {
            Ok(received) if received.is_empty() => break Ok(false),
            Ok(received) => received,
            Err(error) => break Err(error),
        };
        for message in received {
            receipts.push(message.receipt.clone());
            size += message.body.len();
            is_full |= messages.len() >= limit || (size > bytes && !messages.is_empty());
            if !is_full {
                messages.push(message);
            }
        }
    };
    queue.release(&receipts).await?;
    let has_more = result?;
    Ok(Peeked { messages, has_more })
}

/// Summarizes what [`redrive`] would do with messages.
pub fn plan(messages: &[FailedMessage], options: &RedriveOptions) -> RedriveSummary {
    let mut summary = RedriveSummary::default();
    for message in messages.iter().filter(|message| options.selects(message)) {
        let route = RedriveRoute::of(message, options);
        summary.count(message, &route, options.plan(&route));
    }
    summary
}

impl RedriveOptions {
    /// Returns whether a message is one of those to redrive.
    fn selects(&self, message: &FailedMessage) -> bool {
        let is_id = |only: &String| *only == message.id;
        let is_reason = |selected: &String| *selected == reason(message);
        self.only.as_ref().is_none_or(is_id) && self.reason.as_ref().is_none_or(is_reason)
    }

    fn plan(&self, route: &RedriveRoute) -> RedriveOutcome {
        match route {
            RedriveRoute::Request if self.drop_requests => RedriveOutcome::Deleted,
            RedriveRoute::Request | RedriveRoute::None(_) => RedriveOutcome::Left,
            _ => RedriveOutcome::Planned,
        }
    }
}

/// Moves the messages that were sent until the millisecond of `start`: a message that fails again comes back later, and is
/// not moved a second time. `go_on` gets the number of messages of each step and decides whether there is another.
pub async fn redrive(
    queue: &impl FailedQueue,
    options: &RedriveOptions,
    resender: Option<&Resender>,
    start: Timestamp,
    go_on: impl Fn(usize) -> bool,
) -> Result<RedriveSummary, QueueError> {
    // Receipts by id of the messages that stay.
    let mut left = BTreeMap::new();
    let result = move_all(queue, options, resender, start, go_on, &mut left).await;
    let receipts: Vec<String> = left.into_values().collect();
    queue.release(&receipts).await?;
    result
}

async fn move_all(
    queue: &impl FailedQueue,
    options: &RedriveOptions,
    resender: Option<&Resender>,
    start: Timestamp,
    go_on: impl Fn(usize) -> bool,
    left: &mut BTreeMap<String, String>,
) -> Result<RedriveSummary, QueueError> {
    let start = start.nanoseconds() / 1_000_000;
    let mut summary = RedriveSummary::default();
    let mut blocked_groups: HashSet<String> = HashSet::new();
    let limit = match options.only {
        Some(_) => 1,
        None => options.limit,
    };
    let (mut count, mut goes_on) = (0, true);
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
                let was_sent_by_start = i128::from(message.sent_milliseconds) <= start;
                let is_candidate = was_sent_by_start
                    && options.selects(&message)
                    && !left.contains_key(&message.id);
                if is_candidate && !is_blocked && count < limit {
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
            goes_on &= go_on(chosen.len());
        }
        if only_known || count >= limit || !goes_on {
            summary.has_more = !only_known;
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
        RedriveOutcome::Planned => match send(queue, options, resender, message, &route).await {
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
    options: &RedriveOptions,
    resender: Option<&Resender>,
    message: &FailedMessage,
    route: &RedriveRoute,
) -> Result<(), String> {
    let to_queue = match (route, &options.listener_queue) {
        (RedriveRoute::Queue(to), _) => Some((route::restored(message), to)),
        // The listener knows the body as it is.
        (RedriveRoute::Registration(_) | RedriveRoute::Stream(_), Some(to)) => {
            Some((message.clone(), to))
        }
        _ => None,
    };
    if let Some((message, to)) = to_queue {
        let sent = queue.send(&message, to).await;
        return sent.map_err(|error| error.to_string());
    }
    let late = || "it arrived during the redrive; run it again".to_owned();
    let resender = resender.ok_or_else(late)?;
    match (route, &resender.notifications) {
        (RedriveRoute::Update(event), _) => {
            let deadline = resender.clock.now().after(TIMEOUT);
            resender.updates.update(event.as_bytes(), deadline).await
        }
        (RedriveRoute::Delivery(letter), _) => resender.deliveries.redeliver(letter).await,
        (RedriveRoute::Registration(notification), Some(sender)) => {
            sender.notification(notification, &*resender.clock).await
        }
        (RedriveRoute::Stream(range), Some(sender)) => {
            sender.records(range, &*resender.clock).await
        }
        _ => Err(late()),
    }
}

/// Carries out the routes that do not end in a queue.
pub struct Resender {
    /// `None` if the stream listener sends notifications, see [`RedriveOptions::listener_queue`].
    pub notifications: Option<Box<dyn Notify>>,
    pub updates: Box<dyn UpdateHandler>,
    pub deliveries: Box<dyn DeadLetterHandler>,
    pub clock: Arc<dyn Clock>,
}

/// Sends what a stream listener sends. A trait, so that a program that leaves it to the function does not contain a listener.
#[async_trait]
pub trait Notify: Send + Sync {
    /// Sends a notification to the target of its registration.
    async fn notification(
        &self,
        notification: &StoredNotification,
        clock: &dyn Clock,
    ) -> Result<(), String>;

    /// Handles records of a stream.
    async fn records(&self, range: &RecordRange, clock: &dyn Clock) -> Result<(), String>;
}

/// A listener in this process.
pub struct NotificationSender {
    pub channels: Box<dyn ChannelFactory>,
    pub listener: Listener,
    pub records: Box<dyn RecordSource>,
}

#[async_trait]
impl Notify for NotificationSender {
    async fn notification(
        &self,
        notification: &StoredNotification,
        clock: &dyn Clock,
    ) -> Result<(), String> {
        let deadline = clock.now().after(TIMEOUT);
        let registrations = self.listener.registrations();
        let sent = notification.send(registrations, &*self.channels, deadline, clock);
        sent.await.map_err(|error| error.to_string())
    }

    async fn records(&self, range: &RecordRange, clock: &dyn Clock) -> Result<(), String> {
        let deadline = clock.now().after(TIMEOUT);
        self.listener
            .handle_again(&*self.records, range, deadline)
            .await
    }
}
