//! The history writer: records every change of a shadow, from the stream of the main table.
//!
//! It is the stream's second reader, with a table of its own: a failure here delays no notification, and the reverse.
//! The changes of one item are written in order. After the first that fails, nothing later of that item is written, and
//! the event source repeats the batch from there; writing an entry again changes nothing.

mod config;
mod plan;

use std::sync::Arc;
use std::time::Duration;

use antumbra_dynamodb::DynamoDbHistory;
use antumbra_lambda_kit::batch::batch_item_failures;
use antumbra_lambda_kit::metrics::{Metric, Unit};
use antumbra_lambda_kit::{Handler, HandlerError, Invocation, Response};
use antumbra_service::clock::{Clock, Reserve};
use antumbra_shadow::{Model, Timestamp};
use antumbra_wire::stream::EventError;
use async_trait::async_trait;
use aws_types::SdkConfig;

pub use config::Config;
use plan::Plan;

pub const NAME: &str = "history-writer";

/// Time kept back for the response.
const RESPONSE: Reserve = Reserve {
    time: Duration::from_millis(2000),
    share: 8,
};

pub struct HistoryWriter {
    history: DynamoDbHistory,
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
    /// The sequence number to continue from, unless all records are done.
    pub resume_at: Option<String>,
    pub oldest_milliseconds: Option<u64>,
}

pub fn build(config: Config, sdk: &SdkConfig, clock: Arc<dyn Clock>) -> HistoryWriter {
    let history = DynamoDbHistory::connect(sdk, config.history);
    HistoryWriter::new(history, config.model, clock)
}

impl HistoryWriter {
    pub fn new(history: DynamoDbHistory, model: Model, clock: Arc<dyn Clock>) -> HistoryWriter {
        HistoryWriter {
            history,
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
        let plan = Plan::new(event, &self.model)?;
        let until = RESPONSE.deadline(deadline, start);
        let written = self.history.write(&plan.entries, until, &*self.clock).await;
        if let Some(error) = &written.failure {
            tracing::warn!(%error, "entries were not written");
        }
        let failed = written.written.iter().zip(&plan.records);
        let failed: Vec<usize> = failed
            .filter(|(written, _)| !**written)
            .map(|(_, record)| *record)
            .collect();
        Ok(BatchSummary {
            records: plan.sequence_numbers.len(),
            written: plan.entries.len() - failed.len(),
            failed: failed.len(),
            unrecorded: plan.unrecorded,
            resume_at: failed
                .iter()
                .min()
                .map(|record| plan.sequence_numbers[*record].clone()),
            oldest_milliseconds: plan.oldest_seconds.map(|seconds| {
                let now = self.clock.now().nanoseconds() as f64 / 1e6;
                (now - seconds * 1e3).max(0.0) as u64
            }),
        })
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
        Metric::new("oldestRecordAge", oldest, Unit::Milliseconds),
    ]
}
