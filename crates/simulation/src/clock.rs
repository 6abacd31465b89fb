//! Time of the runtime; it advances only while all tasks wait.

use std::time::Duration;

use antumbra_service::clock::Clock;
use antumbra_shadow::Timestamp;
use futures_util::future::BoxFuture;
use tokio::time::Instant;

/// 2026-01-31T12:00:00Z, in nanoseconds.
const BEGINNING: i128 = 1_769_860_800_000_000_000;

/// A clock, which may be wrong by a fixed amount.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VirtualClock {
    start: Instant,
    ahead: i64,
}

impl VirtualClock {
    /// A correct clock at the start time.
    pub(crate) fn start() -> VirtualClock {
        VirtualClock {
            start: Instant::now(),
            ahead: 0,
        }
    }

    /// The same clock, ahead by a number of milliseconds.
    pub(crate) fn ahead(self, milliseconds: i64) -> VirtualClock {
        VirtualClock {
            ahead: milliseconds * 1_000_000,
            ..self
        }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// The time in milliseconds since 1970.
    pub(crate) fn milliseconds(&self) -> u64 {
        (self.now().nanoseconds() / 1_000_000) as u64
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        let elapsed = self.start.elapsed().as_nanos() as i128;
        Timestamp::from_nanoseconds(BEGINNING + elapsed + i128::from(self.ahead))
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}

impl dynoxide::storage_backend::Clock for VirtualClock {
    fn now_unix_secs(&self) -> u64 {
        self.milliseconds() / 1000
    }

    fn now_unix_secs_f64(&self) -> f64 {
        self.milliseconds() as f64 / 1000.0
    }
}
