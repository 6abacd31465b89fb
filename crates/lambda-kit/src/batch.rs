//! The skeleton of functions that process batches: groups side by side, each in order; quarantine of what
//! can never be processed; batch item failures for the rest.

use std::collections::HashMap;
use std::future::Future;
use std::time::Duration;

use antumbra_service::clock::Clock;
use antumbra_service::quarantine::{Quarantine, QuarantinedMessage};
use antumbra_shadow::Timestamp;
use aws_lambda_events::sqs::SqsBatchResponse;
use futures_util::{StreamExt as _, stream};

use crate::handler::{HandlerError, Response};
use crate::metrics::{Metric, Unit};

/// Progress of one message of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step<T> {
    /// Nothing is written yet.
    Pending,
    /// Written, with its result.
    Processed(T),
    /// Can never be processed; goes to the quarantine.
    Rejected(Rejection),
    /// Finished, or in the quarantine.
    Done,
    /// To be received again, for this reason.
    Failed(String),
}

/// Reason why a message can never be processed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// One word, for programs.
    pub reason: &'static str,
    /// One sentence, for people.
    pub detail: String,
}

impl Rejection {
    pub fn new(reason: &'static str, detail: impl ToString) -> Rejection {
        Rejection {
            reason,
            detail: detail.to_string(),
        }
    }
}

/// Messages that are processed one after another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Group<'a> {
    pub key: &'a str,
    /// After a message that failed, the rest of the group fails too.
    pub stop_at_failure: bool,
}

/// Processes the groups side by side, at most `concurrency` at a time, and each group in the order of the
/// batch. Messages without a group keep their step.
///
/// `process` is called for every message of a group that is not rejected.
pub async fn process_groups<'a, T, F: Future<Output = Step<T>>>(
    steps: &mut [Step<T>],
    groups: impl IntoIterator<Item = Option<Group<'a>>>,
    concurrency: usize,
    process: impl Fn(usize) -> F,
) {
    let positions = positions_by_group(steps, groups);
    // Collected before the stream: with a closure in it, the compiler cannot prove that the future is `Send`.
    let groups: Vec<_> = positions
        .into_iter()
        .map(|(stop_at_failure, messages)| process_group(stop_at_failure, messages, &process))
        .collect();
    let mut done = stream::iter(groups).buffer_unordered(concurrency);
    while let Some(group) = done.next().await {
        for (index, step) in group {
            steps[index] = step;
        }
    }
}

/// For each group whether it stops at a failure, and its messages: positions, and whether each is rejected.
fn positions_by_group<'a, T>(
    steps: &[Step<T>],
    groups: impl IntoIterator<Item = Option<Group<'a>>>,
) -> Vec<(bool, Vec<(usize, bool)>)> {
    let mut positions: Vec<(bool, Vec<(usize, bool)>)> = Vec::new();
    let mut known: HashMap<Group<'a>, usize> = HashMap::new();
    for (index, group) in groups.into_iter().enumerate() {
        let Some(group) = group else { continue };
        let at = *known.entry(group).or_insert_with(|| {
            positions.push((group.stop_at_failure, Vec::new()));
            positions.len() - 1
        });
        let rejected = matches!(steps[index], Step::Rejected(_));
        positions[at].1.push((index, rejected));
    }
    positions
}

/// Processes the messages of one group, given as positions and whether each is rejected.
async fn process_group<T, F: Future<Output = Step<T>>>(
    stop_at_failure: bool,
    messages: Vec<(usize, bool)>,
    process: &impl Fn(usize) -> F,
) -> Vec<(usize, Step<T>)> {
    let mut steps = Vec::new();
    let mut stopped = false;
    for (index, rejected) in messages {
        let step = match (stopped, rejected) {
            (true, _) => waiting(),
            (false, true) => continue,
            (false, false) => process(index).await,
        };
        stopped |= stop_at_failure && matches!(step, Step::Failed(_));
        steps.push((index, step));
    }
    steps
}

/// Step of a message behind a failed one of its group.
pub fn waiting<T>() -> Step<T> {
    Step::Failed("waits for an earlier message of its group".to_owned())
}

/// Sends rejected messages to the quarantine. Those become [`Step::Done`]; the ones that the quarantine
/// does not accept before the deadline become [`Step::Failed`]. Returns the number of quarantined messages.
pub async fn quarantine_rejected<T>(
    quarantine: &Quarantine,
    steps: &mut [Step<T>],
    deadline: Timestamp,
    clock: &dyn Clock,
    message: impl Fn(usize, &Rejection) -> QuarantinedMessage,
) -> usize {
    let (mut rejected, mut positions) = (Vec::new(), Vec::new());
    for (index, step) in steps.iter_mut().enumerate() {
        let Step::Rejected(rejection) = step else {
            continue;
        };
        let message = message(index, rejection);
        tracing::warn!(
            message_id = message.id,
            source = message.source,
            reason = message.reason,
            detail = message.detail,
            "message rejected"
        );
        rejected.push(message);
        positions.push(index);
        *step = Step::Done;
    }
    let failures = quarantine.send(&rejected, deadline, clock).await;
    let quarantined = rejected.len() - failures.len();
    for failure in failures {
        let reason = format!("the quarantine queue rejected it: {}", failure.reason);
        steps[positions[failure.index]] = Step::Failed(reason);
    }
    quarantined
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BatchSummary {
    /// Counters by the names of their metrics.
    pub counters: Vec<(&'static str, usize)>,
    /// Item identifiers to be received again, in the order of the batch.
    pub failed: Vec<String>,
    pub oldest: Option<Duration>,
    /// The event source does not read batch item failures (Amazon MQ): one failure fails the invocation.
    pub all_or_nothing: bool,
}

impl BatchSummary {
    /// Starts with these counters at zero, so that their metrics are always written.
    pub fn new(counters: &[&'static str]) -> BatchSummary {
        BatchSummary {
            counters: counters.iter().map(|name| (*name, 0)).collect(),
            ..BatchSummary::default()
        }
    }

    pub fn add(&mut self, counter: &'static str, count: usize) {
        match self.counters.iter_mut().find(|(name, _)| *name == counter) {
            Some((_, total)) => *total += count,
            None => self.counters.push((counter, count)),
        }
    }

    pub fn count(&self, counter: &str) -> usize {
        let found = self.counters.iter().find(|(name, _)| *name == counter);
        found.map_or(0, |(_, count)| *count)
    }

    /// Records a message that is to be received again.
    pub fn fail(&mut self, message_id: &str, reason: &str) {
        tracing::warn!(message_id, reason, "batch item failed");
        self.failed.push(message_id.to_owned());
    }

    /// The counters, the number of failed items and the age of the oldest message.
    pub fn metrics(&self) -> Vec<Metric> {
        let counters = self.counters.iter();
        let mut metrics: Vec<Metric> = counters
            .map(|(name, count)| Metric::count(name, *count))
            .collect();
        metrics.push(Metric::count("failed", self.failed.len()));
        if let Some(oldest) = self.oldest {
            let milliseconds = oldest.as_secs_f64() * 1000.0;
            metrics.push(Metric::new(
                "oldestMessageAge",
                milliseconds,
                Unit::Milliseconds,
            ));
        }
        metrics
    }

    /// Batch item failures, for an event source with `ReportBatchItemFailures`.
    pub fn response(&self) -> Result<Response, HandlerError> {
        if self.all_or_nothing && !self.failed.is_empty() {
            let (failed, messages) = (self.failed.len(), self.count("messages"));
            let message = format!("{failed} of {messages} messages failed");
            return Err(HandlerError::new("BatchFailed", message));
        }
        Response::json(&batch_item_failures(&self.failed), self.metrics())
    }
}

/// The response of an event source mapping with `ReportBatchItemFailures`: message ids of a queue, or the
/// sequence number at which a stream continues. An empty list means that all items succeeded.
///
/// ```
/// use antumbra_lambda_kit::batch::batch_item_failures;
/// assert_eq!(
///     serde_json::to_string(&batch_item_failures(&["222".to_owned()])).unwrap(),
///     r#"{"batchItemFailures":[{"itemIdentifier":"222"}]}"#,
/// );
/// ```
pub fn batch_item_failures<'a>(items: impl IntoIterator<Item = &'a String>) -> SqsBatchResponse {
    let mut response = SqsBatchResponse::default();
    response.set_failures(items.into_iter().cloned());
    response
}
