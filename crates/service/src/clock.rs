//! Time, so that tests and simulations can make their own.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use antumbra_shadow::Timestamp;

/// Tells the time and lets it pass.
pub trait Clock: Send + Sync {
    /// The time now.
    fn now(&self) -> Timestamp;

    /// Returns when that long has passed.
    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send;
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

impl<C: Clock> Clock for Arc<C> {
    fn now(&self) -> Timestamp {
        C::now(self)
    }

    async fn sleep(&self, duration: Duration) {
        C::sleep(self, duration).await;
    }
}
