//! A Lambda function: a name, a timeout, and an async function from event bytes to response bytes.
//!
//! As on AWS, a handler that fails, panics or times out ends the invocation with a function error.

use std::{fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use antumbra_lambda_kit::functions::spec;
use antumbra_lambda_kit::metrics::{self, Collected};
use antumbra_lambda_kit::{Handler, Invocation};
use antumbra_service::clock::{Clock as _, ShiftedClock};
use bytes::Bytes;

use crate::{ACCOUNT, REGION};

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct HandlerError(pub String);

#[derive(Debug, thiserror::Error)]
pub enum FunctionError {
    #[error("failed: {0}")]
    Failed(HandlerError),
    #[error("panicked")]
    Panicked,
    #[error("timed out after {0:?}")]
    TimedOut(Duration),
}

type Call = dyn Fn(Bytes) -> Pin<Box<dyn Future<Output = Result<Bytes, HandlerError>> + Send>>
    + Send
    + Sync;

/// A function that event sources can invoke. Clones share the handler.
#[derive(Clone)]
pub struct Function {
    name: Arc<str>,
    timeout: Duration,
    call: Arc<Call>,
}

impl Function {
    /// A function of the product, with the timeout of its entry in `FUNCTIONS`. The clock sets the deadline
    /// of each invocation. Its metrics are printed in the form of Lambda's logs, if wanted.
    pub(crate) fn from_handler(
        name: &'static str,
        clock: ShiftedClock,
        logs_metrics: bool,
        handler: impl Handler + 'static,
    ) -> Function {
        let timeout = spec(name).timeout;
        let handler = Arc::new(handler);
        Function::new(name, timeout, move |event| {
            let (handler, clock) = (Arc::clone(&handler), clock.clone());
            let invocation = Invocation {
                event,
                deadline: clock.now().after(timeout),
                request_id: uuid::Uuid::new_v4().to_string(),
            };
            async move {
                let response = handler.handle(invocation).await;
                let response = response.map_err(|error| HandlerError(error.to_string()))?;
                tracing::debug!(function = name, metrics = ?response.metrics, "invoked");
                if logs_metrics && !response.metrics.is_empty() {
                    let metrics = response.metrics.iter().copied();
                    let metrics: Vec<Collected> = metrics.map(Collected::from).collect();
                    metrics::emit(name, clock.now(), &metrics);
                }
                Ok(response.payload)
            }
        })
    }

    pub fn new<H, F>(name: &str, timeout: Duration, handler: H) -> Self
    where
        H: Fn(Bytes) -> F + Send + Sync + 'static,
        F: Future<Output = Result<Bytes, HandlerError>> + Send + 'static,
    {
        Self {
            name: name.into(),
            timeout,
            call: Arc::new(move |event| Box::pin(handler(event))),
        }
    }

    /// The function's name, which also names its positions in streams.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    pub fn arn(&self) -> String {
        format!("arn:aws:lambda:{REGION}:{ACCOUNT}:function:{}", self.name)
    }

    /// Calls the handler in its own task, so that a panic ends only the invocation.
    pub async fn invoke(&self, event: Bytes) -> Result<Bytes, FunctionError> {
        let mut running = tokio::spawn((self.call)(event));
        match tokio::time::timeout(self.timeout, &mut running).await {
            Ok(Ok(response)) => response.map_err(FunctionError::Failed),
            Ok(Err(_)) => Err(FunctionError::Panicked),
            Err(_) => {
                running.abort();
                Err(FunctionError::TimedOut(self.timeout))
            }
        }
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Function")
            .field("name", &self.name)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited(
        handler: impl Fn(Bytes) -> Pin<Box<dyn Future<Output = Result<Bytes, HandlerError>> + Send>>
        + Send
        + Sync
        + 'static,
    ) -> Function {
        Function::new("f", Duration::from_secs(30), handler)
    }

    #[tokio::test]
    async fn the_response_is_returned() {
        let echo = limited(|event| Box::pin(async { Ok(event) }));
        assert_eq!(echo.invoke("{}".into()).await.unwrap(), "{}");
    }

    #[tokio::test]
    async fn a_panic_is_a_function_error() {
        let broken = limited(|_| Box::pin(async { panic!("on purpose") }));
        let error = broken.invoke(Bytes::new()).await.unwrap_err();
        assert!(matches!(error, FunctionError::Panicked));
    }

    #[tokio::test(start_paused = true)]
    async fn a_timeout_is_a_function_error() {
        let stuck = limited(|_| Box::pin(std::future::pending()));
        let error = stuck.invoke(Bytes::new()).await.unwrap_err();
        assert!(matches!(error, FunctionError::TimedOut(_)));
    }
}
