//! Detects writes that may have been applied although the call failed.
//!
//! The SDK repeats a call whose response was lost. The last response alone then does not show whether the write was
//! applied: an earlier attempt may have changed the table. Such an attempt is *in doubt*.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use antumbra_service::store::StoreError;
use aws_sdk_dynamodb::config::interceptors::FinalizerInterceptorContextRef;
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::error::BoxError;

/// An SDK interceptor that observes the attempts of one call.
#[derive(Debug, Clone, Default)]
pub(crate) struct AttemptTracker {
    in_doubt: Arc<AtomicBool>,
}

impl AttemptTracker {
    /// Returns `true` if an attempt may have been applied, because DynamoDB did not reject it.
    pub(crate) fn in_doubt(&self) -> bool {
        self.in_doubt.load(Ordering::Relaxed)
    }

    /// Converts the error of a call to `Unavailable` if an attempt is in doubt. All other errors mean that the write
    /// was not applied.
    pub(crate) fn qualify(&self, error: StoreError) -> StoreError {
        match error {
            error @ StoreError::Unavailable(_) => error,
            error if self.in_doubt() => StoreError::Unavailable(format!(
                "an earlier attempt got no response, the last one: {error}"
            )),
            error => error,
        }
    }
}

impl Intercept for AttemptTracker {
    fn name(&self) -> &'static str {
        "AttemptTracker"
    }

    fn read_after_attempt(
        &self,
        context: &FinalizerInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let rejected = context
            .response()
            .is_some_and(|response| response.status().is_client_error());
        if !rejected {
            self.in_doubt.store(true, Ordering::Relaxed);
        }
        Ok(())
    }
}
