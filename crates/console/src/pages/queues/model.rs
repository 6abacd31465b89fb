//! The reads of the page: counts, and the messages on request.

use std::sync::atomic::Ordering;

use antumbra_service::api::{FailedMessages, FailedQueue, RedriveResults};
use antumbra_service::redrive::QueueError;

use super::Asked;
use crate::state::Console;
use crate::view::View;

/// Messages that are read and planned at once.
const READ: usize = 1000;

/// Everything that the page shows.
pub(super) struct Model {
    pub(super) asked: Asked,
    pub(super) counts: Result<Vec<FailedQueue>, QueueError>,
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
    let contents = match view.get("read").or(view.get("plan")) {
        None => None,
        Some(_) => {
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
    let counts = count(&view.console).await;
    Model {
        asked,
        counts,
        contents,
        failed: None,
    }
}

/// Counts the messages of all queues, also for the navigation.
pub(super) async fn count(console: &Console) -> Result<Vec<FailedQueue>, QueueError> {
    let queues = console.services.failed_messages.queues().await?.queues;
    let total: u64 = queues
        .iter()
        .map(|queue| queue.messages + queue.hidden)
        .sum();
    let total = usize::try_from(total).unwrap_or(usize::MAX);
    console
        .attention
        .failed_messages
        .store(total, Ordering::Relaxed);
    Ok(queues)
}
