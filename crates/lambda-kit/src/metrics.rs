//! Metrics in CloudWatch's embedded metric format: log lines, each with the metrics of many invocations.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use antumbra_shadow::Timestamp;
use serde_json::{Map, Value, json};

/// Time after which a process logs again what it has collected. A function that runs every minute logs every time.
const INTERVAL: Duration = Duration::from_secs(50);
/// Most values of a metric in a line.
const VALUES: usize = 100;

/// Counts that alarms watch. They are logged at once: a process may not be invoked again for a long time.
pub const AT_ONCE: [&str; 6] = [
    "disabled",
    "lost",
    "quarantined",
    "undeliverable",
    "unfinished",
    "unrecorded",
];

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

/// The values of a metric in one line: the sum of counts, or each duration.
#[derive(Debug, Clone, PartialEq)]
pub struct Collected {
    pub name: &'static str,
    pub unit: Unit,
    pub values: Vec<f64>,
}

impl From<Metric> for Collected {
    fn from(metric: Metric) -> Collected {
        Collected {
            name: metric.name,
            unit: metric.unit,
            values: vec![metric.value],
        }
    }
}

impl Collected {
    fn add(&mut self, value: f64) {
        match (self.unit, &mut self.values[..]) {
            (Unit::Count, [sum, ..]) => *sum += value,
            _ => self.values.push(value),
        }
    }
}

/// The metrics of a process that are not logged yet. A line for each invocation would cost more than the invocation.
#[derive(Debug, Default)]
pub struct Collector {
    collected: Vec<Collected>,
    logged_at: Option<Timestamp>,
}

impl Collector {
    /// Adds the metrics of an invocation. Returns all that are to be logged now: at the first invocation, after an
    /// interval, if a line is full, or if there is something that alarms watch.
    pub fn add(&mut self, metrics: &[Metric], now: Timestamp) -> Option<Vec<Collected>> {
        for metric in metrics {
            let mut known = self.collected.iter_mut();
            match known.find(|of| of.name == metric.name) {
                Some(of) => of.add(metric.value),
                None => self.collected.push(Collected::from(*metric)),
            }
        }
        let alarming = |metric: &Metric| metric.value > 0.0 && AT_ONCE.contains(&metric.name);
        let is_full = |of: &Collected| of.values.len() >= VALUES;
        let is_due = self.logged_at.is_none_or(|at| at.after(INTERVAL) <= now)
            || metrics.iter().any(alarming)
            || self.collected.iter().any(is_full);
        if !is_due || self.collected.is_empty() {
            return None;
        }
        self.logged_at = Some(now);
        Some(std::mem::take(&mut self.collected))
    }
}

/// The log line with the metrics of one function, in the namespace `Antumbra`.
pub fn line(function: &str, now: Timestamp, metrics: &[Collected]) -> String {
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
    let values = metrics.iter().map(|metric| {
        let value = match metric.values[..] {
            [value] => Value::from(value),
            _ => Value::from(metric.values.clone()),
        };
        (metric.name.to_owned(), value)
    });
    line.extend(values);
    Value::Object(line).to_string()
}

static LOGGED: AtomicBool = AtomicBool::new(true);

/// Switches the lines on or off: CloudWatch charges for each metric that it finds in them.
pub fn set_logged(logged: bool) {
    LOGGED.store(logged, Ordering::Relaxed);
}

/// Writes the line to standard output, unless metrics are switched off. A failed write costs the metrics, not the invocation.
pub fn emit(function: &str, now: Timestamp, metrics: &[Collected]) {
    if !LOGGED.load(Ordering::Relaxed) {
        return;
    }
    let _ = writeln!(std::io::stdout(), "{}", line(function, now, metrics));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i128) -> Timestamp {
        Timestamp::from_nanoseconds(seconds * 1_000_000_000)
    }

    fn invocation(failures: usize) -> [Metric; 3] {
        [
            Metric::count("messages", 2),
            Metric::count("quarantined", failures),
            Metric::new("duration", 7.5, Unit::Milliseconds),
        ]
    }

    #[test]
    fn counts_are_summed_and_durations_kept_until_the_interval_has_passed() {
        let mut collector = Collector::default();
        assert!(collector.add(&invocation(0), at(0)).is_some(), "the first");
        for second in 1..50 {
            assert_eq!(collector.add(&invocation(0), at(second)), None);
        }
        let logged = collector.add(&invocation(0), at(50)).unwrap();
        let values: Vec<&[f64]> = logged.iter().map(|of| &of.values[..]).collect();
        assert_eq!(values, [&[100.0][..], &[0.0], &[7.5; 50]]);
        let line: Value = serde_json::from_str(&line("f", at(50), &logged)).unwrap();
        assert_eq!(line["messages"], 100.0);
        assert_eq!(line["duration"].as_array().unwrap().len(), 50);
    }

    #[test]
    fn a_line_has_a_hundred_values_at_most() {
        let mut collector = Collector::default();
        let logged = (0..301).filter_map(|_| collector.add(&invocation(0), at(0)));
        let sizes: Vec<usize> = logged.map(|of| of[2].values.len()).collect();
        assert_eq!(sizes, [1, 100, 100, 100]);
    }

    #[test]
    fn what_alarms_watch_is_logged_at_once_with_all_that_was_collected() {
        let mut collector = Collector::default();
        collector.add(&invocation(0), at(0));
        assert_eq!(collector.add(&invocation(0), at(1)), None);
        let logged = collector.add(&invocation(3), at(2)).unwrap();
        assert_eq!(logged[0].values, [4.0]);
        assert_eq!(logged[1].values, [3.0]);
        assert_eq!(collector.add(&invocation(0), at(3)), None);
    }
}
