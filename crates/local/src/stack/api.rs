//! The HTTP API: the router that runs behind API Gateway, on a port of its own and with a bearer token.

use std::future::IntoFuture;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use antumbra_dynamodb::{
    DynamoDbClients, DynamoDbDeliveries, DynamoDbIdempotency, DynamoDbInbox, DynamoDbSensors,
    DynamoDbShadows, MAIN, MESSAGES, SensorConfig, ShadowTableConfig, client,
};
use antumbra_http_api::{Api, AuthMode, NAME, Services, Token, router};
use antumbra_lambda_kit::functions::{queues, spec};
use antumbra_publish::SqsChannel;
use antumbra_publish::sqs::SMALL_BYTES;
use antumbra_publish::webhook::{Allow, Guard};
use antumbra_service::clients::Clients;
use antumbra_service::clock::Clock;
use antumbra_service::deliveries::{Deliveries, Queues};
use antumbra_service::sensors::Sensors;
use antumbra_service::shadows::Shadows;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{LocalServices, StackError};
use crate::function::Function;
use crate::listen::bind;

/// How long running requests may take after the stop.
const GRACE: Duration = Duration::from_secs(2);

/// The API, listening. Dropping it stops it.
pub(super) struct HttpApi {
    address: SocketAddr,
    stop: CancellationToken,
    serving: JoinHandle<()>,
}

/// Starts the API. `allow` lists webhook endpoints that are allowed beside the public internet.
pub(super) async fn start(
    services: &LocalServices,
    port: u16,
    token: &str,
    allow: Allow,
) -> Result<HttpApi, StackError> {
    let (listener, address) = bind("HTTP", port).await?;
    // Each request passes through a function that does nothing, so that tests can make it fail.
    let called = Function::new(NAME, spec(NAME).timeout, |event| async { Ok(event) });
    let called = (services.wrap)(called);
    let router = router(api(services, allow), AuthMode::Token(Token::new(token)));
    let router = router.layer(from_fn(move |request: Request, next: Next| {
        let called = called.clone();
        async move { through(&called, request, next).await }
    }));
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    let serving = tokio::spawn(async move {
        let stopping = stopped.clone();
        let server = axum::serve(listener, router)
            .with_graceful_shutdown(async move { stopping.cancelled().await })
            .into_future();
        let late = async {
            stopped.cancelled().await;
            tokio::time::sleep(GRACE).await;
        };
        tokio::select! {
            _ = server => {}
            () = late => {}
        }
    });
    Ok(HttpApi {
        address,
        stop,
        serving,
    })
}

/// Responds with 502 if the function fails, as API Gateway does.
async fn through(called: &Function, request: Request, next: Next) -> Response {
    if let Err(error) = called.invoke(Bytes::new()).await {
        tracing::warn!(function = NAME, %error, "the function failed");
        return (StatusCode::BAD_GATEWAY, "the function failed").into_response();
    }
    next.run(request).await
}

fn api(services: &LocalServices, allow: Allow) -> Api {
    let sdk = services.sdk_of(NAME);
    let clock = services.clock.clone();
    let shadows = DynamoDbShadows::connect(
        &sdk,
        ShadowTableConfig::new(MAIN.name).layout(services.layout),
    );
    let sensors = DynamoDbSensors::connect(&sdk, SensorConfig::new(MAIN.name));
    let clients = DynamoDbClients::connect(&sdk, MAIN.name);
    let history = DynamoDbDeliveries::connect(&sdk, MAIN.name);
    let sqs = aws_sdk_sqs::Client::new(&sdk);
    let queue = |name| {
        let url = services.queues.queue_url(name);
        Arc::new(SqsChannel::new(&sqs, &url).with_bytes(SMALL_BYTES))
    };
    let deliveries = Queues {
        ordered: queue(queues::DELIVERIES_FIFO),
        unordered: queue(queues::DELIVERIES),
    };
    let guard = Guard::new(allow);
    Api::new(Services {
        shadows: Box::new(Shadows::with_clock(shadows, Arc::new(clock.clone()))),
        messages: Box::new(DynamoDbInbox::connect(&sdk, MESSAGES.name)),
        sensors: Box::new(Sensors::with_clock(sensors, Arc::new(clock.clone()))),
        clients: Box::new(Clients::new(
            clients.clone(),
            guard,
            Arc::new(clock.clone()),
        )),
        deliveries: Box::new(Deliveries::new(
            clients,
            history,
            deliveries,
            Arc::new(clock.clone()),
        )),
        answers: Box::new(DynamoDbIdempotency::new(client(&sdk), MAIN.name)),
        now: Box::new(move || clock.now()),
    })
}

impl HttpApi {
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits for running requests and stops.
    pub(super) async fn stop(mut self) {
        self.stop.cancel();
        let _ = (&mut self.serving).await;
    }
}

impl Drop for HttpApi {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
