//! The Lambda runtime loop.
//!
//! `lambda_runtime` parses an event before the handler sees it, which for a large batch takes as long as
//! handling it. A layer takes the body out before that and leaves `null` to be parsed.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context as TaskContext, Poll};
use std::time::Instant;

use antumbra_service::clock::{Clock, SystemClock};
use antumbra_shadow::Timestamp;
use bytes::Bytes;
use lambda_runtime::tower::Layer;
use lambda_runtime::{
    Diagnostic, Error, LambdaEvent, LambdaInvocation, Runtime, Service, layers::TracingLayer,
    service_fn,
};
use serde::Serialize;
use serde::ser::Error as _;
use serde_json::value::RawValue;

use crate::handler::{Handler, Invocation, Response};
use crate::metrics::{self, Collector, Metric, Unit};

/// Serves the invocations of the named function until the process ends.
pub async fn run(function: &'static str, handler: impl Handler) -> Result<(), Error> {
    let body = Body::default();
    let (taken, handler) = (body.clone(), &handler);
    let collector = &Mutex::new(Collector::default());
    let service = service_fn(move |call: LambdaEvent<()>| {
        let deployed = call.context.env_config.function_name.clone();
        let invocation = Invocation {
            event: taken.take(),
            deadline: Timestamp::from_nanoseconds(i128::from(call.context.deadline) * 1_000_000),
            request_id: call.context.request_id,
        };
        async move {
            let started = Instant::now();
            let response = handler.handle(invocation).await?;
            emit(
                if deployed.is_empty() {
                    function
                } else {
                    &deployed
                },
                &response,
                started,
                collector,
            );
            Ok::<_, Diagnostic>(Payload(response.payload))
        }
    });
    Runtime::new(service)
        .layer(TakeBody(body))
        .layer(TracingLayer::new())
        .run()
        .await
}

/// Collects the metrics, and logs them now and then, under the name that the function has in its deployment, so that
/// deployments in one account do not mix.
fn emit(function: &str, response: &Response, started: Instant, collector: &Mutex<Collector>) {
    if response.metrics.is_empty() {
        return;
    }
    let mut all = response.metrics.clone();
    if !all.iter().any(|metric| metric.name == "duration") {
        let milliseconds = started.elapsed().as_secs_f64() * 1000.0;
        all.push(Metric::new("duration", milliseconds, Unit::Milliseconds));
    }
    let now = SystemClock.now();
    let mut collector = collector.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(collected) = collector.add(&all, now) {
        metrics::emit(function, now, &collected);
    }
}

/// JSON that is serialized already.
struct Payload(Bytes);

impl Serialize for Payload {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let json: &RawValue = serde_json::from_slice(&self.0).map_err(S::Error::custom)?;
        json.serialize(serializer)
    }
}

/// Hands the body from the layer to the handler. One invocation runs at a time.
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
