//! Whether an earlier attempt of a call may have taken place.
//!
//! The SDK tries a call again when its answer was lost. Then the last answer alone does not say what
//! became of the call: the attempt before may have been the one that changed the table.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aws_sdk_dynamodb::config::interceptors::FinalizerInterceptorContextRef;
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::error::BoxError;

/// Watches the attempts of one call.
#[derive(Debug, Clone, Default)]
pub(crate) struct AttemptTracker {
    doubtful: Arc<AtomicBool>,
}

impl AttemptTracker {
    /// Whether any attempt ended without DynamoDB saying that it refused it.
    pub(crate) fn doubtful(&self) -> bool {
        self.doubtful.load(Ordering::Relaxed)
    }
}

impl Intercept for AttemptTracker {
    fn name(&self) -> &'static str {
        "Attempts"
    }

    fn read_after_attempt(
        &self,
        context: &FinalizerInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let refused = context
            .response()
            .is_some_and(|response| response.status().is_client_error());
        if !refused {
            self.doubtful.store(true, Ordering::Relaxed);
        }
        Ok(())
    }
}
