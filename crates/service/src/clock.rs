//! Time as an argument, so that tests and the simulation can supply their own.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use antumbra_shadow::Timestamp;
use futures_util::future::BoxFuture;

pub trait Clock: Send + Sync {
    fn now(&self) -> Timestamp;

    /// Completes after the duration has passed on this clock.
    fn sleep(&self, duration: Duration) -> BoxFuture<'_, ()>;
}

/// Returns the time from `now` until `then`; zero if `then` has passed.
pub fn time_left(now: Timestamp, then: Timestamp) -> Duration {
    let nanoseconds = then.nanoseconds() - now.nanoseconds();
    Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or_default())
}

/// Formats a time as RFC 3339 in UTC with three digits of a second, always the same length.
///
/// ```
/// use antumbra_service::clock::rfc3339_milliseconds;
/// use antumbra_shadow::Timestamp;
/// let noon = Timestamp::parse("2026-01-31T13:00:00+01:00").unwrap();
/// assert_eq!(rfc3339_milliseconds(noon), "2026-01-31T12:00:00.000Z");
/// ```
pub fn rfc3339_milliseconds(time: Timestamp) -> String {
    let total = time.nanoseconds().div_euclid(1_000_000);
    let (seconds, rest) = (total.div_euclid(1000), total.rem_euclid(1000));
    let whole = Timestamp::from_nanoseconds(seconds * 1_000_000_000).to_string();
    format!("{}.{rest:03}Z", whole.trim_end_matches('Z'))
}

/// Time kept back before a deadline, for the work that must still be done after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reserve {
    /// The time to keep back.
    pub time: Duration,
    /// Upper bound as a share of the available time: at most one part in `share`.
    pub share: u32,
}

impl Reserve {
    /// Returns the deadline that leaves this reserve before `deadline`, for work that began at `start`.
    ///
    /// ```
    /// use antumbra_service::clock::Reserve;
    /// use antumbra_shadow::Timestamp;
    /// use std::time::Duration;
    ///
    /// let start = Timestamp::default();
    /// let reserve = Reserve { time: Duration::from_secs(4), share: 4 };
    /// let after = |seconds| start.after(Duration::from_secs(seconds));
    /// assert_eq!(reserve.deadline(after(30), start), after(26));
    /// assert_eq!(reserve.deadline(after(8), start), after(6));
    /// ```
    pub fn deadline(self, deadline: Timestamp, start: Timestamp) -> Timestamp {
        let available = (deadline.nanoseconds() - start.nanoseconds()).max(0);
        let reserved =
            (self.time.as_nanos() as i128).min(available / i128::from(self.share.max(1)));
        Timestamp::from_nanoseconds(deadline.nanoseconds() - reserved)
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        // A system clock before 1970 is wrong anyway.
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Timestamp::from_nanoseconds(since.as_nanos() as i128)
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}

/// The system clock, moved ahead by an adjustable offset. Clones share the offset.
#[derive(Debug, Clone, Default)]
pub struct ShiftedClock(Arc<AtomicU64>);

impl ShiftedClock {
    pub fn shift(&self, by: Duration) {
        self.0.fetch_add(by.as_millis() as u64, Ordering::Relaxed);
    }

    pub fn ahead(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::Relaxed))
    }
}

impl Clock for ShiftedClock {
    fn now(&self) -> Timestamp {
        SystemClock.now().after(self.ahead())
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}

/// A clock that moves only by [`advance`](ManualClock::advance) and `sleep`, which returns at once.
#[derive(Debug, Default)]
pub struct ManualClock(Mutex<Timestamp>);

impl ManualClock {
    pub fn new(now: Timestamp) -> ManualClock {
        ManualClock(Mutex::new(now))
    }

    pub fn advance(&self, duration: Duration) {
        let mut now = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *now = now.after(duration);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'_, ()> {
        self.advance(duration);
        Box::pin(tokio::task::yield_now())
    }
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> Timestamp {
        C::now(self)
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'_, ()> {
        C::sleep(self, duration)
    }
}
