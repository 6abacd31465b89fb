//! The reads of the page: counts, and the messages on request.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use antumbra_http_api::QueueName;
use antumbra_service::api::{FailedMessages, FailedQueue, RedriveResults};
use antumbra_service::redrive::QueueError;
use antumbra_shadow::Timestamp;

use super::{Asked, is_read};
use crate::state::lock;
use crate::view::View;

/// Messages that are read and planned at once.
const READ: usize = 1000;
/// Time for which counts are used by all open pages; less than that between their reads.
const RECENT: Duration = Duration::from_secs(4);

/// Everything that the page shows.
pub(super) struct Model {
    pub(super) asked: Asked,
    pub(super) counts: Arc<Counts>,
    /// The messages, if they were asked for.
    pub(super) contents: Option<Result<Contents, QueueError>>,
    /// The result of a redrive that failed in part.
    pub(super) failed: Option<Result<RedriveResults, QueueError>>,
}

pub(super) struct Contents {
    pub(super) messages: FailedMessages,
    /// Dry run of a redrive, if that is asked for.
    pub(super) plan: Option<RedriveResults>,
}

pub(super) async fn model(view: &View, asked: Asked) -> Model {
    let failed_messages = &view.console.services.failed_messages;
    let contents = match is_read(view) {
        false => None,
        true => {
            let request = asked.request(&view.console);
            let read = failed_messages
                .messages_and_plan(asked.queue(), READ, &request)
                .await;
            Some(read.map(|(messages, plan)| Contents {
                messages,
                plan: view.get("plan").map(|_| plan),
            }))
        }
    };
    if let Some(Ok(contents)) = &contents {
        let sent = contents.messages.messages.iter();
        let oldest = sent.map(|message| message.sent_at.0).min();
        lock(&view.console.oldest).insert(asked.queue().as_str(), (oldest, view.now));
    }
    Model {
        asked,
        counts: count(view).await,
        contents,
        failed: None,
    }
}

/// About how many messages the queues hold.
#[derive(Debug)]
pub(crate) struct Counts {
    pub(super) queues: Result<Vec<FailedQueue>, QueueError>,
    at: Timestamp,
}

/// The last counts: all open pages share them.
pub(crate) type CountsCache = Mutex<Option<Arc<Counts>>>;

/// Counts the messages of all queues, also for the navigation.
async fn count(view: &View) -> Arc<Counts> {
    let console = &view.console;
    let queues = console.services.failed_messages.queues().await;
    let counts = Arc::new(Counts {
        queues: queues.map(|counted| counted.queues),
        at: view.now,
    });
    if let Ok(queues) = &counts.queues {
        let total: u64 = queues
            .iter()
            .map(|queue| queue.messages + queue.hidden)
            .sum();
        let total = usize::try_from(total).unwrap_or(usize::MAX);
        let attention = &console.attention.failed_messages;
        attention.store(total, Ordering::Relaxed);
    }
    *lock(&console.counts) = Some(Arc::clone(&counts));
    counts
}

/// Returns the last counts, or counts again if they are old.
pub(super) async fn recent_counts(view: &View) -> Arc<Counts> {
    let last = lock(&view.console.counts).clone();
    match last {
        Some(last) if view.now < last.at.after(RECENT) => last,
        _ => count(view).await,
    }
}

/// Returns about how many messages are in quarantine.
pub(in crate::pages) async fn quarantined(view: &View) -> u64 {
    let counts = recent_counts(view).await;
    let queues = counts.queues.as_deref().unwrap_or_default();
    let name = QueueName::Quarantine.as_str();
    let found = queues.iter().find(|queue| queue.name == name);
    found.map_or(0, |queue| queue.messages + queue.hidden)
}

/// The oldest message of each queue as of the last time that somebody read it, and that time: SQS does not say it.
pub(crate) type OldestRead = Mutex<HashMap<&'static str, (Option<Timestamp>, Timestamp)>>;

/// The oldest message of a queue when it was read last, and that time.
pub(super) fn oldest_read(view: &View, queue: QueueName) -> Option<(Timestamp, Timestamp)> {
    let (oldest, read) = *lock(&view.console.oldest).get(queue.as_str())?;
    Some((oldest?, read))
}
