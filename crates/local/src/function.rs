//! What stands for a Lambda function: a name, a time limit, and an async
//! function from event bytes to response bytes.
//!
//! A function that fails, panics or runs out of time looks to the event source
//! as it would on AWS: an invocation that ended in a function error.

use std::{fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;

use crate::{ACCOUNT, REGION};

/// What a handler returns when the whole invocation failed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct HandlerError(pub String);

/// How an invocation that gave no response ended.
#[derive(Debug, thiserror::Error)]
pub enum FunctionError {
    /// The handler returned an error.
    #[error("failed: {0}")]
    Failed(HandlerError),
    /// The handler panicked.
    #[error("panicked")]
    Panicked,
    /// The handler did not end within its time limit.
    #[error("timed out after {0:?}")]
    TimedOut(Duration),
}

type Call = dyn Fn(Bytes) -> Pin<Box<dyn Future<Output = Result<Bytes, HandlerError>> + Send>>
    + Send
    + Sync;

/// A function that event sources can call. Clones share the handler.
#[derive(Clone)]
pub struct Function {
    name: Arc<str>,
    timeout: Duration,
    call: Arc<Call>,
}

impl Function {
    /// A function of the given name, which may run as long as `timeout`.
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

    /// How long it may run.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// The ARN it would have on AWS.
    pub fn arn(&self) -> String {
        format!("arn:aws:lambda:{REGION}:{ACCOUNT}:function:{}", self.name)
    }

    /// Calls the handler, in a task of its own so that a panic stays in there.
    pub async fn invoke(&self, event: Bytes) -> Result<Bytes, FunctionError> {
        let mut running = tokio::spawn((self.call)(event));
        match tokio::time::timeout(self.timeout, &mut running).await {
            Ok(Ok(answer)) => answer.map_err(FunctionError::Failed),
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
    async fn the_response_comes_back() {
        let echo = limited(|event| Box::pin(async { Ok(event) }));
        assert_eq!(echo.invoke("{}".into()).await.unwrap(), "{}");
    }

    #[tokio::test]
    async fn a_panic_is_a_function_error() {
        let broken = limited(|_| Box::pin(async { panic!("to order") }));
        let error = broken.invoke(Bytes::new()).await.unwrap_err();
        assert!(matches!(error, FunctionError::Panicked));
    }

    #[tokio::test(start_paused = true)]
    async fn running_out_of_time_is_a_function_error() {
        let stuck = limited(|_| Box::pin(std::future::pending()));
        let error = stuck.invoke(Bytes::new()).await.unwrap_err();
        assert!(matches!(error, FunctionError::TimedOut(_)));
    }
}
