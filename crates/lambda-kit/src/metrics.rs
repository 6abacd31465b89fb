//! Metrics in CloudWatch's embedded format: a log line that becomes metrics.

use std::io::Write;

use antumbra_shadow::Timestamp;
use serde_json::{Map, Value, json};

/// The unit of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Unit {
    Count,
    Milliseconds,
}

impl Unit {
    fn as_str(self) -> &'static str {
        match self {
            Unit::Count => "Count",
            Unit::Milliseconds => "Milliseconds",
        }
    }
}

/// One line that CloudWatch turns into metrics of the namespace `Antumbra`, by function.
///
/// ```
/// use antumbra_lambda_kit::metrics::{Unit, line};
/// use antumbra_shadow::Timestamp;
/// let line = line("stream-listener", Timestamp::default(), &[("records", 3.0, Unit::Count)]);
/// assert!(line.contains(r#""records":3"#));
/// ```
pub fn line(function: &str, now: Timestamp, metrics: &[(&str, f64, Unit)]) -> String {
    let names: Vec<Value> = metrics
        .iter()
        .map(|(name, _, unit)| json!({"Name": name, "Unit": unit.as_str()}))
        .collect();
    let mut line = Map::new();
    line.insert(
        "_aws".to_owned(),
        json!({
            "Timestamp": (now.nanoseconds() / 1_000_000) as i64,
            "CloudWatchMetrics": [{"Namespace": "Antumbra", "Dimensions": [["function"]], "Metrics": names}],
        }),
    );
    line.insert("function".to_owned(), Value::from(function));
    line.extend(
        metrics
            .iter()
            .map(|(name, value, _)| ((*name).to_owned(), Value::from(*value))),
    );
    Value::Object(line).to_string()
}

/// Writes the line where Lambda reads logs.
pub fn emit(function: &str, now: Timestamp, metrics: &[(&str, f64, Unit)]) {
    write(&line(function, now, metrics));
}

/// Writes a line that is made. A full pipe costs a metric, not an invocation.
pub fn write(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
