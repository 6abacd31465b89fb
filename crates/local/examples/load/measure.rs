//! Counting and timing, second by second.

use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Measurements of the running second and of all before it.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    now: Mutex<Current>,
}

/// Measurements since the last second ended.
#[derive(Debug, Default)]
struct Current {
    reports: Vec<Duration>,
    notifications: Vec<Duration>,
    deliveries: Vec<Duration>,
}

/// Measurements of one second.
#[derive(Debug, Clone, Default)]
pub(crate) struct Second {
    pub(crate) reports: Spread,
    pub(crate) notifications: Spread,
    pub(crate) deliveries: Spread,
    pub(crate) megabytes: usize,
    pub(crate) cores: f64,
}

/// Sorted durations.
#[derive(Debug, Clone, Default)]
pub(crate) struct Spread(Vec<Duration>);

impl Spread {
    pub(crate) fn new(mut took: Vec<Duration>) -> Spread {
        took.sort_unstable();
        Spread(took)
    }

    pub(crate) fn all<'a>(parts: impl Iterator<Item = &'a Spread>) -> Spread {
        Spread::new(parts.flat_map(|part| part.0.iter().copied()).collect())
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// Quantile in milliseconds; 0 without durations.
    pub(crate) fn at(&self, part: f64) -> f64 {
        let at = (self.0.len().saturating_sub(1)) as f64 * part;
        self.0
            .get(at as usize)
            .map_or(0.0, |took| took.as_secs_f64() * 1e3)
    }
}

impl Meter {
    pub(crate) fn report(&self, took: Duration) {
        self.now.lock().unwrap().reports.push(took);
    }

    pub(crate) fn notification(&self, took: Duration) {
        self.now.lock().unwrap().notifications.push(took);
    }

    pub(crate) fn delivery(&self, took: Duration) {
        self.now.lock().unwrap().deliveries.push(took);
    }

    /// Ends a second in which this much processor time was used.
    pub(crate) fn close(&self, elapsed: Duration, processor: f64) -> Second {
        let Current {
            reports,
            notifications,
            deliveries,
        } = std::mem::take(&mut *self.now.lock().unwrap());
        Second {
            reports: Spread::new(reports),
            notifications: Spread::new(notifications),
            deliveries: Spread::new(deliveries),
            megabytes: resident_megabytes(),
            cores: processor / elapsed.as_secs_f64(),
        }
    }

    /// Ends second after second until cancelled.
    pub(crate) async fn watch(&self, mut end: tokio::sync::oneshot::Receiver<()>) -> Vec<Second> {
        let mut seconds = Vec::new();
        let (mut since, mut used) = (Instant::now(), processor_seconds());
        loop {
            let ended = tokio::select! {
                _ = &mut end => true,
                () = tokio::time::sleep_until((since + Duration::from_secs(1)).into()) => false,
            };
            let (now, using) = (Instant::now(), processor_seconds());
            seconds.push(self.close(now - since, using - used));
            if ended {
                return seconds;
            }
            (since, used) = (now, using);
        }
    }
}

/// Time since a Unix time in nanoseconds.
pub(crate) fn since(nanoseconds: i128) -> Duration {
    let now = std::time::SystemTime::now();
    let now = now.duration_since(std::time::UNIX_EPOCH).unwrap();
    let ago = now.as_nanos() as i128 - nanoseconds;
    Duration::from_nanos(ago.max(0) as u64)
}

/// Processor time of this process, from /proc where it exists.
pub(crate) fn processor_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = text.rsplit(')').next().unwrap().split(' ').collect();
    let ticks = |at: usize| fields.get(at).and_then(|t| t.parse::<f64>().ok());
    (ticks(12).unwrap_or_default() + ticks(13).unwrap_or_default()) / 100.0
}

pub(crate) fn resident_megabytes() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|t| t.parse::<usize>().ok());
    pages.unwrap_or_default() * 4096 / 1_000_000
}
