//! Time, so that tests and simulations can make their own.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use antumbra_shadow::Timestamp;

/// Tells the time and lets it pass.
pub trait Clock: Send + Sync {
    /// The time now.
    fn now(&self) -> Timestamp;

    /// Returns when that long has passed.
    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send;
}

/// How long until then; nothing if it has passed.
pub fn time_left(now: Timestamp, then: Timestamp) -> Duration {
    let nanoseconds = then.nanoseconds() - now.nanoseconds();
    Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or_default())
}

/// A while before the deadline of what began at `start`, but at most that part of the time there is.
///
/// ```
/// use antumbra_service::clock::before;
/// use antumbra_shadow::Timestamp;
/// use std::time::Duration;
///
/// let start = Timestamp::default();
/// let kept = (Duration::from_secs(4), 4);
/// let deadline = |seconds| start.after(Duration::from_secs(seconds));
/// assert_eq!(before(deadline(30), start, kept), deadline(26));
/// assert_eq!(before(deadline(8), start, kept), deadline(6));
/// ```
pub fn before(deadline: Timestamp, start: Timestamp, kept: (Duration, u32)) -> Timestamp {
    let (time, part) = kept;
    let all = deadline.nanoseconds() - start.nanoseconds();
    let kept = (time.as_nanos() as i128).min(all.max(0) / i128::from(part.max(1)));
    Timestamp::from_nanoseconds(deadline.nanoseconds() - kept)
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        // Before 1970 the clock is wrong anyway.
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Timestamp::from_nanoseconds(since.as_nanos() as i128)
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

/// The machine's clock moved ahead, for trying what takes hours: it goes on from where it was put. Clones
/// are the same clock.
///
/// ```
/// use antumbra_service::clock::{Clock, ShiftedClock, SystemClock};
/// use std::time::Duration;
///
/// let clock = ShiftedClock::default();
/// clock.shift(Duration::from_secs(3600));
/// assert!(clock.now() >= SystemClock.now().after(Duration::from_secs(3599)));
/// ```
#[derive(Debug, Clone, Default)]
pub struct ShiftedClock(Arc<AtomicU64>);

impl ShiftedClock {
    /// Moves it ahead by that much more.
    pub fn shift(&self, by: Duration) {
        self.0.fetch_add(by.as_millis() as u64, Ordering::Relaxed);
    }

    /// How far it is ahead.
    pub fn ahead(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::Relaxed))
    }
}

impl Clock for ShiftedClock {
    fn now(&self) -> Timestamp {
        SystemClock.now().after(self.ahead())
    }

    async fn sleep(&self, duration: Duration) {
        SystemClock.sleep(duration).await;
    }
}

/// A clock that stands still until it is told otherwise; whoever sleeps on it moves it on. An hour takes
/// no time.
///
/// ```
/// use antumbra_service::clock::{Clock, ManualClock};
/// use antumbra_shadow::Timestamp;
/// use std::time::Duration;
///
/// let clock = ManualClock::new(Timestamp::parse("2026-01-31T12:00:00Z").unwrap());
/// clock.advance(Duration::from_secs(3600));
/// assert_eq!(clock.now().to_string(), "2026-01-31T13:00:00Z");
/// ```
#[derive(Debug, Default)]
pub struct ManualClock(Mutex<Timestamp>);

impl ManualClock {
    /// Standing at the given time.
    pub fn new(now: Timestamp) -> ManualClock {
        ManualClock(Mutex::new(now))
    }

    /// Moves it on.
    pub fn advance(&self, duration: Duration) {
        let mut now = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *now = now.after(duration);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn sleep(&self, duration: Duration) {
        self.advance(duration);
        tokio::task::yield_now().await;
    }
}

impl<C: Clock> Clock for Arc<C> {
    fn now(&self) -> Timestamp {
        C::now(self)
    }

    async fn sleep(&self, duration: Duration) {
        C::sleep(self, duration).await;
    }
}
