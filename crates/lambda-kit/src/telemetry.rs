//! Structured logs: one JSON object per line on standard output.

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Starts logging at a level (`info`) or with a filter (`info,aws=warn`). Later calls are ignored, so that
/// tests can share a process.
pub fn start(level: &str) {
    let lines = fmt::layer()
        .json()
        .flatten_event(true)
        .with_current_span(true)
        .with_span_list(false)
        .with_target(true);
    let _ = tracing_subscriber::registry()
        .with(filter(level))
        .with(lines)
        .try_init();
}

/// Filters by level and target. `EnvFilter` would add a regular expression engine to every function.
fn filter(level: &str) -> Targets {
    let filter: Targets = level.parse().unwrap_or_default();
    match filter.default_level() {
        Some(_) => filter,
        // Invalid text, or levels of single targets only.
        None => filter.with_default(LevelFilter::INFO),
    }
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::filter::LevelFilter;

    use super::filter;

    #[test]
    fn a_level_applies_to_all_targets_unless_one_has_its_own() {
        let of = |text: &str, target: &str| {
            let filter = filter(text);
            let found = [
                tracing::Level::TRACE,
                tracing::Level::DEBUG,
                tracing::Level::INFO,
                tracing::Level::WARN,
                tracing::Level::ERROR,
            ];
            let found = found
                .iter()
                .find(|level| filter.would_enable(target, level));
            found.map_or(LevelFilter::OFF, |level| LevelFilter::from_level(*level))
        };
        assert_eq!(of("info", "antumbra"), LevelFilter::INFO);
        assert_eq!(of("WARN", "antumbra"), LevelFilter::WARN);
        assert_eq!(of("off", "antumbra"), LevelFilter::OFF);
        assert_eq!(of("debug,aws_sdk_sqs=warn", "antumbra"), LevelFilter::DEBUG);
        assert_eq!(
            of("debug,aws_sdk_sqs=warn", "aws_sdk_sqs::client"),
            LevelFilter::WARN
        );
        assert_eq!(of("what is this", "antumbra"), LevelFilter::INFO);
        assert_eq!(of("aws_sdk_sqs=warn", "antumbra"), LevelFilter::INFO);
    }
}
