//! What became of an event.

use std::time::Duration;

use antumbra_lambda_kit::batch::BatchResponse;
use antumbra_lambda_kit::metrics::{self, Unit};
use antumbra_service::deliveries::{MessageDisposition, Status};
use antumbra_shadow::Timestamp;

use crate::NAME;

/// What became of an event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BatchSummary {
    /// Messages in the event.
    pub messages: usize,
    /// Deliveries that clients have now.
    pub delivered: usize,
    /// Deliveries that are kept until their client is enabled.
    pub parked: usize,
    /// Deliveries that nobody wants any more: skipped or superseded.
    pub dropped: usize,
    /// Deliveries that are to be tried again.
    pub postponed: usize,
    /// Deliveries that failed for the last time.
    pub dead: usize,
    /// Messages that are no deliveries.
    pub unreadable: usize,
    /// The queue's ids of the messages to be handed over again, in the order of the event.
    pub failed: Vec<String>,
}

impl BatchSummary {
    /// Counts one turn.
    pub(crate) fn count(&mut self, settled: MessageDisposition) {
        match settled {
            MessageDisposition::Done(Status::Delivered) => self.delivered += 1,
            MessageDisposition::Done(Status::Parked) => self.parked += 1,
            MessageDisposition::Done(_) => self.dropped += 1,
            MessageDisposition::Again(_) => self.postponed += 1,
            MessageDisposition::Dead => self.dead += 1,
        }
    }

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
        metrics::line(
            NAME,
            now,
            &[
                ("messages", count(self.messages), Unit::Count),
                ("delivered", count(self.delivered), Unit::Count),
                ("parked", count(self.parked), Unit::Count),
                ("dropped", count(self.dropped), Unit::Count),
                ("postponed", count(self.postponed), Unit::Count),
                ("dead", count(self.dead), Unit::Count),
                ("unreadable", count(self.unreadable), Unit::Count),
                ("duration", took.as_secs_f64() * 1000.0, Unit::Milliseconds),
            ],
        )
    }
}
