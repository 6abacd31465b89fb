//! Calls of stores that are repeated until they succeed or time is up.

use std::future::Future;

use antumbra_service::backoff;
use antumbra_service::clock::{Clock, time_left};
use antumbra_service::store::StoreError;
use antumbra_shadow::Timestamp;

pub(crate) async fn with_retries<T, F: Future<Output = Result<T, StoreError>>>(
    deadline: Timestamp,
    clock: &dyn Clock,
    call: impl Fn() -> F,
) -> Result<T, StoreError> {
    let mut failures = 0;
    loop {
        let left = time_left(clock.now(), deadline);
        let error = match tokio::time::timeout(left, call()).await {
            Ok(Ok(found)) => return Ok(found),
            Ok(Err(error)) if !error.is_retryable() => return Err(error),
            Ok(Err(error)) => error,
            Err(_) => return Err(StoreError::Unavailable("timed out".to_owned())),
        };
        failures += 1;
        let pause = backoff::delay(failures, fastrand::f64());
        if clock.now().after(pause) >= deadline {
            return Err(error);
        }
        clock.sleep(pause).await;
    }
}
