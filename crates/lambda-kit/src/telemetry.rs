//! Structured logs, one JSON object a line, as CloudWatch reads them.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::FmtSpan;

/// Starts logging at the given level (`info`, or a filter such as `info,aws=warn`). A second start is
/// ignored, so that tests may share a process.
pub fn start(level: &str) {
    let filter = EnvFilter::try_new(level).unwrap_or_else(|_| EnvFilter::new("info"));
    let _ = tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_current_span(true)
        .with_span_list(false)
        .with_span_events(FmtSpan::NONE)
        .with_target(true)
        .with_env_filter(filter)
        .try_init();
}
