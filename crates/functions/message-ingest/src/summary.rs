//! What became of an event.

use std::time::Duration;

use antumbra_lambda_kit::batch::BatchResponse;
use antumbra_lambda_kit::metrics::{self, Unit};
use antumbra_shadow::Timestamp;

use crate::NAME;

/// What became of an event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BatchSummary {
    /// Messages in the event.
    pub messages: usize,
    /// Messages that are in the inbox now and were not before.
    pub stored: usize,
    /// Messages that had been stored before, and perhaps deleted since.
    pub known: usize,
    /// Messages that were put in the quarantine.
    pub quarantined: usize,
    /// Times that storing a message had to be tried again.
    pub retried: usize,
    /// The queue's ids of the messages to be delivered again, in the order of the event.
    pub failed: Vec<String>,
    /// How long the oldest message had waited.
    pub oldest: Duration,
}

impl BatchSummary {
    /// The answer Lambda reads.
    pub fn response(&self) -> BatchResponse {
        BatchResponse::failed(self.failed.iter().cloned())
    }

    /// Writes the metrics of one invocation.
    pub fn emit(&self, now: Timestamp, took: Duration) {
        metrics::write(&self.metrics(now, took));
    }

    /// The metrics of one invocation, as they are logged.
    pub fn metrics(&self, now: Timestamp, took: Duration) -> String {
        let count = |value: usize| value as f64;
        let milliseconds = |time: Duration| time.as_secs_f64() * 1000.0;
        metrics::line(
            NAME,
            now,
            &[
                ("messages", count(self.messages), Unit::Count),
                ("stored", count(self.stored), Unit::Count),
                ("known", count(self.known), Unit::Count),
                ("quarantined", count(self.quarantined), Unit::Count),
                ("retried", count(self.retried), Unit::Count),
                ("failed", count(self.failed.len()), Unit::Count),
                (
                    "oldestMessageAge",
                    milliseconds(self.oldest),
                    Unit::Milliseconds,
                ),
                ("duration", milliseconds(took), Unit::Milliseconds),
            ],
        )
    }
}
