//! The runtime loop, with the event handed over as the bytes that came.
//!
//! `lambda_runtime` parses an event before the handler sees it, which for a large batch costs as much as
//! all the rest. Here a layer takes the body out first and leaves `null` to be parsed.

use std::fmt::Display;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context as TaskContext, Poll};
use std::time::{Duration, Instant};

use antumbra_shadow::Timestamp;
use bytes::Bytes;
use lambda_runtime::tower::Layer;
use lambda_runtime::{
    Diagnostic, Error, LambdaEvent, LambdaInvocation, Runtime, Service, layers::TracingLayer,
    service_fn,
};
use serde::Serialize;

/// One call of a function.
#[derive(Debug, Clone)]
pub struct Invocation {
    /// The event, as it came.
    pub event: Bytes,
    /// When Lambda ends the call.
    pub deadline: Timestamp,
    /// Lambda's id of the call.
    pub request_id: String,
}

/// Serves invocations until the process ends.
pub async fn run<H, F, R, E>(handler: H) -> Result<(), Error>
where
    H: Fn(Invocation) -> F,
    F: Future<Output = Result<R, E>>,
    R: Serialize,
    E: Into<Diagnostic> + std::fmt::Debug,
{
    let body = Body::default();
    let taken = body.clone();
    let service = service_fn(move |call: LambdaEvent<()>| {
        handler(Invocation {
            event: taken.take(),
            deadline: Timestamp::from_nanoseconds(i128::from(call.context.deadline) * 1_000_000),
            request_id: call.context.request_id,
        })
    });
    Runtime::new(service)
        .layer(TakeBody(body))
        .layer(TracingLayer::new())
        .run()
        .await
}

/// Serves events of a kind: `handle` takes one and the time that Lambda ends the call, `tell` is given what
/// became of it and how long that took, and answers. An event that cannot be handled at all fails the call.
pub async fn run_events<H, F, O, E, T, R>(handle: H, tell: T) -> Result<(), Error>
where
    H: Fn(Bytes, Timestamp) -> F,
    F: Future<Output = Result<O, E>>,
    E: Display,
    T: Fn(O, Duration) -> Result<R, Diagnostic>,
    R: Serialize,
{
    let (handle, tell) = (&handle, &tell);
    run(|invocation: Invocation| async move {
        let started = Instant::now();
        let handled = handle(invocation.event, invocation.deadline).await;
        let handled = handled.map_err(|error| diagnostic("EventError", &error))?;
        tell(handled, started.elapsed())
    })
    .await
}

/// A failed call, as Lambda tells it.
pub fn diagnostic(kind: &str, error: &dyn Display) -> Diagnostic {
    Diagnostic {
        error_type: kind.to_owned(),
        error_message: error.to_string(),
    }
}

/// Where the body waits between the layer and the handler. One invocation runs at a time.
#[derive(Clone, Default)]
struct Body(Arc<Mutex<Bytes>>);

impl Body {
    fn put(&self, body: Bytes) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = body;
    }

    fn take(&self) -> Bytes {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

struct TakeBody(Body);

impl<S> Layer<S> for TakeBody {
    type Service = TakingBody<S>;

    fn layer(&self, inner: S) -> TakingBody<S> {
        TakingBody {
            inner,
            body: self.0.clone(),
        }
    }
}

struct TakingBody<S> {
    inner: S,
    body: Body,
}

impl<S: Service<LambdaInvocation>> Service<LambdaInvocation> for TakingBody<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut TaskContext<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut invocation: LambdaInvocation) -> S::Future {
        self.body.put(std::mem::replace(
            &mut invocation.body,
            Bytes::from_static(b"null"),
        ));
        self.inner.call(invocation)
    }
}
