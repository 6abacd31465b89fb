//! One HTTP endpoint for three services: SQS requests name their operation in a header, AWS IoT requests
//! have a path of their own, everything else is SNS.

use std::convert::Infallible;
use std::time::Duration;

use antumbra_queues::{Queues, sqs};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::data_plane;
use crate::mqtt::Publisher;

/// Time that connections get to end on a stop.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);
/// The largest request: a full batch, with room for escapes and attributes.
const MAX_REQUEST_BYTES: usize = 8 * 1024 * 1024;

#[derive(Clone)]
pub(super) struct Front {
    pub(super) queues: Queues,
    pub(super) mqtt: Option<Publisher>,
}

impl Front {
    pub(super) async fn serve(self, listener: TcpListener, stop: CancellationToken) {
        let connections = GracefulShutdown::new();
        loop {
            let stream = tokio::select! {
                () = stop.cancelled() => break,
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => stream,
                    // A connection that ended before it was accepted, or no file handle left: neither is
                    // a reason to stop listening.
                    Err(error) => {
                        tracing::debug!(%error, "a connection was not accepted");
                        tokio::time::sleep(Duration::from_millis(10)).await;
                        continue;
                    }
                },
            };
            let front = self.clone();
            let service = service_fn(move |request| {
                let front = front.clone();
                async move { Ok::<_, Infallible>(front.serve_request(request).await) }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .serve_connection(TokioIo::new(stream), service);
            let connection = connections.watch(connection);
            tokio::spawn(async move {
                if let Err(error) = connection.await {
                    tracing::debug!(%error, "a connection ended early");
                }
            });
        }
        drop(listener);
        let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, connections.shutdown()).await;
    }

    async fn serve_request(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        if let Some(mqtt) = self.mqtt.as_ref().filter(|_| data_plane::is_for(&request)) {
            return data_plane::answer(request, mqtt).await;
        }
        let target = request.headers().get("x-amz-target").cloned();
        let body = Limited::new(request.into_body(), MAX_REQUEST_BYTES)
            .collect()
            .await;
        let Ok(body) = body.map(http_body_util::Collected::to_bytes) else {
            let mut response = Response::new(Full::default());
            *response.status_mut() = StatusCode::PAYLOAD_TOO_LARGE;
            return response;
        };
        let response = match target
            .as_ref()
            .map(|target| target.to_str().unwrap_or_default())
        {
            Some(target) => {
                let operation = target.strip_prefix(sqs::TARGET).unwrap_or(target);
                self.queues.sqs(operation, &body).await
            }
            None => self.queues.sns(&body),
        };
        response.map(Full::new)
    }
}
