//! The stream listener function: [`antumbra_notify::Listener`] behind the events of a DynamoDB stream.

mod config;

use std::time::Duration;

use antumbra_lambda_kit::batch::BatchResponse;
use antumbra_lambda_kit::metrics::{self, Unit};
use antumbra_notify::BatchSummary;
use antumbra_shadow::Timestamp;

pub use config::Config;

/// The function's name, in metrics and on the local stack.
pub const NAME: &str = "stream-listener";

/// The response Lambda reads: the sequence number to continue from, if not all records are done.
pub fn response(summary: &BatchSummary) -> BatchResponse {
    BatchResponse::failed(summary.resume_at.clone())
}

/// The metrics of one invocation, as they are logged.
pub fn metrics(summary: &BatchSummary, now: Timestamp, took: Duration) -> String {
    let count = |value: usize| value as f64;
    metrics::line(
        NAME,
        now,
        &[
            ("records", count(summary.records), Unit::Count),
            ("matched", count(summary.matched), Unit::Count),
            ("sent", count(summary.sent), Unit::Count),
            ("retried", count(summary.retried), Unit::Count),
            ("parked", count(summary.parked), Unit::Count),
            (
                "oldestRecordAge",
                summary.oldest_milliseconds.unwrap_or(0) as f64,
                Unit::Milliseconds,
            ),
            ("duration", took.as_secs_f64() * 1000.0, Unit::Milliseconds),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_response_names_the_record_to_continue_from() {
        let resume = |resume_at: Option<&str>| {
            let summary = BatchSummary {
                resume_at: resume_at.map(str::to_owned),
                ..BatchSummary::default()
            };
            serde_json::to_string(&response(&summary)).unwrap_or_default()
        };
        assert_eq!(resume(None), r#"{"batchItemFailures":[]}"#);
        assert_eq!(
            resume(Some("")),
            r#"{"batchItemFailures":[{"itemIdentifier":""}]}"#
        );
    }
}
