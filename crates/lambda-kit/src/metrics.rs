//! Metrics in CloudWatch's embedded metric format: one log line per invocation.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use antumbra_shadow::Timestamp;
use serde_json::{Map, Value, json};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Count,
    Milliseconds,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Metric {
    pub name: &'static str,
    pub value: f64,
    pub unit: Unit,
}

impl Metric {
    pub fn new(name: &'static str, value: f64, unit: Unit) -> Metric {
        Metric { name, value, unit }
    }

    pub fn count(name: &'static str, count: usize) -> Metric {
        Metric::new(name, count as f64, Unit::Count)
    }
}

impl Unit {
    fn as_str(self) -> &'static str {
        match self {
            Unit::Count => "Count",
            Unit::Milliseconds => "Milliseconds",
        }
    }
}

/// The log line with the metrics of one function, in the namespace `Antumbra`.
pub fn line(function: &str, now: Timestamp, metrics: &[Metric]) -> String {
    let names: Vec<Value> = metrics
        .iter()
        .map(|metric| json!({"Name": metric.name, "Unit": metric.unit.as_str()}))
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
            .map(|metric| (metric.name.to_owned(), Value::from(metric.value))),
    );
    Value::Object(line).to_string()
}

static LOGGED: AtomicBool = AtomicBool::new(true);

/// Switches the lines on or off: CloudWatch charges for each metric that it finds in them.
pub fn set_logged(logged: bool) {
    LOGGED.store(logged, Ordering::Relaxed);
}

/// Writes the line to standard output, unless metrics are switched off. A failed write costs the metrics, not the invocation.
pub fn emit(function: &str, now: Timestamp, metrics: &[Metric]) {
    if !LOGGED.load(Ordering::Relaxed) {
        return;
    }
    let _ = writeln!(std::io::stdout(), "{}", line(function, now, metrics));
}
