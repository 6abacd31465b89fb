//! What became of an event, and the answer to it.

use std::time::Duration;

use antumbra_lambda_kit::batch::BatchResponse;
use antumbra_lambda_kit::metrics::{self, Unit};
use antumbra_service::sensors::Outcome;
use antumbra_shadow::Timestamp;

use crate::NAME;

/// Every outcome of a signal that was taken in, in the order figures are shown.
const OUTCOMES: [Outcome; 5] = [
    Outcome::First,
    Outcome::Changed,
    Outcome::Same,
    Outcome::Stale,
    Outcome::Duplicate,
];

/// What became of an event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BatchSummary {
    /// Messages in it.
    pub messages: usize,
    /// Signals that were taken in, by what they did.
    pub outcomes: Vec<Outcome>,
    /// Sensors that registered themselves by speaking.
    pub registered: usize,
    /// Messages that were put away for good.
    pub quarantined: usize,
    /// Markers of the sweep.
    pub markers: usize,
    /// Ids of messages to be delivered again, in order.
    pub failed: Vec<String>,
    /// How old the oldest message was.
    pub oldest: Duration,
    /// Whether the whole event is to be delivered again if anything is.
    pub all_or_nothing: bool,
}

/// An event that has to be delivered again as a whole.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{failed} of {messages} messages have to be delivered again")]
pub struct Unfinished {
    /// Messages that failed.
    pub failed: usize,
    /// Messages in the event.
    pub messages: usize,
}

impl BatchSummary {
    /// How many signals had an outcome.
    pub fn count(&self, outcome: Outcome) -> usize {
        self.outcomes.iter().filter(|one| **one == outcome).count()
    }

    /// The answer Lambda reads; an error fails the event as a whole, which is all Amazon MQ understands.
    pub fn response(&self) -> Result<BatchResponse, Unfinished> {
        if self.all_or_nothing && !self.failed.is_empty() {
            return Err(Unfinished {
                failed: self.failed.len(),
                messages: self.messages,
            });
        }
        Ok(BatchResponse::failed(self.failed.iter().cloned()))
    }

    /// Writes the metrics of one invocation.
    pub fn emit(&self, now: Timestamp, took: Duration) {
        metrics::write(&self.metrics(now, took));
    }

    /// The metrics of one invocation, as they are logged.
    pub fn metrics(&self, now: Timestamp, took: Duration) -> String {
        let milliseconds = |duration: Duration| duration.as_secs_f64() * 1000.0;
        let counts = [
            ("messages", self.messages),
            ("registered", self.registered),
            ("quarantined", self.quarantined),
            ("retried", self.failed.len()),
        ];
        let outcomes = OUTCOMES.map(|outcome| (outcome.as_str(), self.count(outcome)));
        let mut all: Vec<(&str, f64, Unit)> = counts
            .into_iter()
            .chain(outcomes)
            .map(|(name, count)| (name, count as f64, Unit::Count))
            .collect();
        all.push((
            "oldestMessageAge",
            milliseconds(self.oldest),
            Unit::Milliseconds,
        ));
        all.push(("duration", milliseconds(took), Unit::Milliseconds));
        metrics::line(NAME, now, &all)
    }
}
