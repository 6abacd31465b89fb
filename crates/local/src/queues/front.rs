//! One HTTP endpoint for three services, told apart by how they are spoken
//! to: SQS by a JSON body and a target header, MQTT's HTTPS side by its path,
//! SNS by a form.

use std::{convert::Infallible, sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::{
    Request, Response, body::Incoming, server::conn::http1, service::Service as _,
    service::service_fn,
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
};
use rustack_sns_core::provider::RustackSns;
use rustack_sns_http::{
    body::SnsResponseBody,
    service::{SnsHttpConfig, SnsHttpService},
};
use rustack_sqs_core::{handler::RustackSqsHandler, provider::RustackSqs};
use rustack_sqs_http::{
    body::SqsResponseBody,
    service::{SqsHttpConfig, SqsHttpService},
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::{data_plane, raw::RawSubscriptions, topics::Topics};
use crate::mqtt::Publisher;

/// How long connections may take to end once told to.
const PATIENCE: Duration = Duration::from_secs(2);

#[derive(Clone)]
pub(super) struct Front {
    sqs: SqsHttpService<RustackSqsHandler>,
    sns: SnsHttpService<Topics>,
    mqtt: Option<Publisher>,
}

type Body = Either<Either<SqsResponseBody, SnsResponseBody>, Full<Bytes>>;

impl Front {
    pub(super) fn new(
        sqs: Arc<RustackSqs>,
        sns: Arc<RustackSns>,
        raw: RawSubscriptions,
        mqtt: Option<Publisher>,
    ) -> Self {
        let sqs = Arc::new(RustackSqsHandler::new(sqs));
        let sns = Arc::new(Topics::new(sns, raw));
        Self {
            sqs: SqsHttpService::new(sqs, SqsHttpConfig::default()),
            sns: SnsHttpService::new(sns, SnsHttpConfig::default()),
            mqtt,
        }
    }

    pub(super) async fn serve(self, listener: TcpListener, stop: CancellationToken) {
        let connections = GracefulShutdown::new();
        loop {
            let stream = tokio::select! {
                () = stop.cancelled() => break,
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => stream,
                    // A connection that ended before it was taken, or no file
                    // handle left: neither is a reason to stop listening.
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
                async move { Ok::<_, Infallible>(front.answer(request).await) }
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
        let _ = tokio::time::timeout(PATIENCE, connections.shutdown()).await;
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        if request.headers().contains_key("x-amz-target") {
            match self.sqs.call(request).await {
                Ok(response) => response.map(Either::Left).map(Either::Left),
                Err(never) => match never {},
            }
        } else if let Some(mqtt) = self.mqtt.as_ref().filter(|_| data_plane::is_for(&request)) {
            data_plane::answer(request, mqtt).await.map(Either::Right)
        } else {
            match self.sns.call(request).await {
                Ok(response) => response.map(Either::Right).map(Either::Left),
                Err(never) => match never {},
            }
        }
    }
}
