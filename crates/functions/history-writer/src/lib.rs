//! The history writer: records every change of a shadow, from the stream of the main table.
//!
//! It is the stream's second reader, with a table of its own: a failure here delays no notification, and the reverse.
//! The changes of one item are written in order. After the first that fails, nothing later of that item is written, and
//! the event source repeats the batch from there; writing an entry again changes nothing.
//!
//! Changes of a shadow that was purged since are dropped, however late they come.
//!
//! Then the changes up to there are appended to the change feed. A change is in the feed only if its entry is written.

mod config;
mod plan;

use std::sync::Arc;
use std::time::Duration;

use antumbra_dynamodb::{DynamoDbHistory, FeedConfig, FeedSettings, WrittenEntries};
use antumbra_lambda_kit::batch::batch_item_failures;
use antumbra_lambda_kit::metrics::{Metric, Unit};
use antumbra_lambda_kit::{Handler, HandlerError, Invocation, Response};
use antumbra_service::clock::{Clock, Reserve, time_left};
use antumbra_service::store::StoreError;
use antumbra_shadow::{Model, Timestamp};
use antumbra_wire::history::SegmentEntry;
use antumbra_wire::stream::EventError;
use async_trait::async_trait;
use aws_types::SdkConfig;
use tokio::sync::OnceCell;

pub use config::Config;
use plan::Plan;

pub const NAME: &str = "history-writer";

/// Time kept back for the response.
const RESPONSE: Reserve = Reserve {
    time: Duration::from_millis(2000),
    share: 8,
};

/// Time kept back for the change feed, so that a batch that is written in part is also appended in part.
const FEED: Reserve = Reserve {
    time: Duration::from_millis(6000),
    share: 4,
};

pub struct HistoryWriter {
    history: DynamoDbHistory,
    feed: Option<FeedConfig>,
    /// Settings of the feed in the table, read once.
    feed_settings: OnceCell<FeedSettings>,
    model: Model,
    clock: Arc<dyn Clock>,
}

/// Summary of one batch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BatchSummary {
    pub records: usize,
    /// Entries that were written.
    pub written: usize,
    /// Entries that were not written, and are repeated.
    pub failed: usize,
    /// Records that can never be recorded.
    pub unrecorded: usize,
    /// Changes that were purged before they were recorded.
    pub purged: usize,
    /// Entries that were written but are not in the change feed, and are repeated.
    pub not_appended: usize,
    /// The sequence number to continue from, unless all records are done.
    pub resume_at: Option<String>,
    pub oldest_milliseconds: Option<u64>,
}

pub fn build(config: Config, sdk: &SdkConfig, clock: Arc<dyn Clock>) -> HistoryWriter {
    let history = DynamoDbHistory::connect(sdk, config.history);
    HistoryWriter::new(history, config.feed, config.model, clock)
}

impl HistoryWriter {
    pub fn new(
        history: DynamoDbHistory,
        feed: Option<FeedConfig>,
        model: Model,
        clock: Arc<dyn Clock>,
    ) -> HistoryWriter {
        HistoryWriter {
            history,
            feed,
            feed_settings: OnceCell::new(),
            model,
            clock,
        }
    }

    /// Records the changes of one event; returns before the deadline.
    pub async fn record(
        &self,
        event: &[u8],
        deadline: Timestamp,
    ) -> Result<BatchSummary, EventError> {
        let start = self.clock.now();
        let mut plan = Plan::new(event, &self.model)?;
        let until = RESPONSE.deadline(deadline, start);
        let entries_until = match self.feed {
            Some(_) => FEED.deadline(until, start),
            None => until,
        };
        let (written, purged) = self.write(&mut plan, entries_until).await;
        if let Some(error) = &written.failure {
            tracing::warn!(%error, "entries were not written");
        }
        let first_failed = written.written.iter().position(|written| !written);
        // The records are in the order of the stream, and so are the entries.
        let done = first_failed.unwrap_or(plan.entries.len());
        let mut resume = first_failed;
        let appended = self.append(&plan.changes[..done], until).await;
        if let Err(error) = &appended {
            tracing::warn!(%error, "changes were not appended to the feed");
            resume = Some(0);
        }
        let count = written.written.iter().filter(|written| **written).count();
        Ok(BatchSummary {
            records: plan.sequence_numbers.len(),
            written: count,
            failed: plan.entries.len() - count,
            unrecorded: plan.unrecorded,
            purged,
            not_appended: appended.map_or(done, |()| 0),
            resume_at: resume.map(|entry| plan.sequence_numbers[plan.records[entry]].clone()),
            oldest_milliseconds: plan.oldest_seconds.map(|seconds| {
                let now = self.clock.now().nanoseconds() as f64 / 1e6;
                (now - seconds * 1e3).max(0.0) as u64
            }),
        })
    }

    /// Drops what was purged, and writes the other entries. Returns the number of those that were dropped.
    async fn write(&self, plan: &mut Plan, until: Timestamp) -> (WrittenEntries, usize) {
        let failed = |plan: &Plan, error| WrittenEntries {
            written: vec![false; plan.entries.len()],
            failure: Some(error),
        };
        if plan.entries.is_empty() {
            return (WrittenEntries::default(), 0);
        }
        let left = time_left(self.clock.now(), until);
        let purged = tokio::time::timeout(left, self.history.purged(&plan.entries)).await;
        let late = || StoreError::Unavailable("timed out".to_owned());
        let dropped = match purged.unwrap_or_else(|_| Err(late())) {
            Ok(purged) => plan.drop_purged(&purged),
            Err(error) => return (failed(plan, error), 0),
        };
        let written = self.history.write(&plan.entries, until, &*self.clock);
        (written.await, dropped)
    }

    /// Appends changes to the feed.
    async fn append(&self, changes: &[SegmentEntry], until: Timestamp) -> Result<(), StoreError> {
        let Some(config) = self.feed.filter(|_| !changes.is_empty()) else {
            return Ok(());
        };
        let append = async {
            let ensure = || self.history.ensure_feed(config, self.clock.now());
            let settings = self.feed_settings.get_or_try_init(ensure).await?;
            let feed = (settings, config.days);
            self.history.append(feed, changes, &*self.clock).await
        };
        match tokio::time::timeout(time_left(self.clock.now(), until), append).await {
            Ok(result) => result,
            Err(_) => Err(StoreError::Unavailable("timed out".to_owned())),
        }
    }
}

#[async_trait]
impl Handler for HistoryWriter {
    async fn handle(&self, invocation: Invocation) -> Result<Response, HandlerError> {
        let recorded = self.record(&invocation.event, invocation.deadline).await;
        let summary = recorded.map_err(HandlerError::event)?;
        let failures = batch_item_failures(&summary.resume_at);
        Response::json(&failures, metrics(&summary))
    }
}

pub fn metrics(summary: &BatchSummary) -> Vec<Metric> {
    let oldest = summary.oldest_milliseconds.unwrap_or(0) as f64;
    vec![
        Metric::count("records", summary.records),
        Metric::count("written", summary.written),
        Metric::count("failed", summary.failed),
        Metric::count("unrecorded", summary.unrecorded),
        Metric::count("purged", summary.purged),
        Metric::count("notAppended", summary.not_appended),
        Metric::new("oldestRecordAge", oldest, Unit::Milliseconds),
    ]
}
