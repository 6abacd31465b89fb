//! The HTTP API: the router that runs behind API Gateway, here on a port of its own and behind a token.

use std::future::IntoFuture;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use antumbra_dynamodb::{
    DynamoDbClients, DynamoDbDeliveries, DynamoDbIdempotency, DynamoDbInbox, DynamoDbSensors,
    DynamoDbShadows, MAIN, MESSAGES, SensorConfig, ShadowTableConfig, client,
};
use antumbra_http_api::{Api, AuthMode, NAME, Services, Token, router};
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

use super::deliveries::{ORDERED, UNORDERED};
use super::{LocalServices, Sdk, StackError};
use crate::function::Function;
use crate::listen::bind;

/// How long a call may take, as the template says.
const TIMEOUT: Duration = Duration::from_secs(29);

/// How long requests may take to end once told to.
const PATIENCE: Duration = Duration::from_secs(2);

/// The API, listening. Dropping it stops it.
pub(super) struct HttpApi {
    address: SocketAddr,
    stop: CancellationToken,
    serving: JoinHandle<()>,
}

/// Starts the API. Clients may have URLs of the public internet, and those that are allowed.
pub(super) async fn start(
    ground: &LocalServices,
    port: u16,
    token: &str,
    allow: Allow,
) -> Result<HttpApi, StackError> {
    let (listener, address) = bind("HTTP", port).await?;
    // Each request passes through a function that does nothing, so that it can be made to fail as others.
    let called = Function::new(NAME, TIMEOUT, |event| async { Ok(event) });
    let called = (ground.wrap)(called);
    let router = router(api(ground, allow), AuthMode::Token(Token::new(token)));
    let router = router.layer(from_fn(move |request: Request, next: Next| {
        let called = called.clone();
        async move { through(&called, request, next).await }
    }));
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    let serving = tokio::spawn(async move {
        let told = stopped.clone();
        let server = axum::serve(listener, router)
            .with_graceful_shutdown(async move { told.cancelled().await })
            .into_future();
        let late = async {
            stopped.cancelled().await;
            tokio::time::sleep(PATIENCE).await;
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

/// A function that fails is a 502, as behind API Gateway.
async fn through(called: &Function, request: Request, next: Next) -> Response {
    if let Err(error) = called.invoke(Bytes::new()).await {
        tracing::warn!(function = NAME, %error, "the function failed");
        return (StatusCode::BAD_GATEWAY, "the function failed").into_response();
    }
    next.run(request).await
}

fn api(ground: &LocalServices, allow: Allow) -> Api {
    let Sdk { aws, database } = ground.sdk_of(NAME);
    let clock = ground.clock.clone();
    let shadows = DynamoDbShadows::connect(
        &database,
        ShadowTableConfig::new(MAIN.name).layout(ground.layout),
    );
    let sensors = DynamoDbSensors::connect(&database, SensorConfig::new(MAIN.name));
    let clients = DynamoDbClients::connect(&database, MAIN.name);
    let history = DynamoDbDeliveries::connect(&database, MAIN.name);
    let sqs = aws_sdk_sqs::Client::new(&aws);
    let queue = |name| {
        let url = ground.queues.queue_url(name);
        Arc::new(SqsChannel::new(&sqs, &url).with_bytes(SMALL_BYTES))
    };
    let queues = Queues {
        ordered: queue(ORDERED),
        unordered: queue(UNORDERED),
    };
    let guard = Guard::new(allow);
    Api::new(Services {
        shadows: Box::new(Shadows::with_clock(shadows, Arc::new(clock.clone()))),
        messages: Box::new(DynamoDbInbox::connect(&database, MESSAGES.name)),
        sensors: Box::new(Sensors::with_clock(sensors, Arc::new(clock.clone()))),
        clients: Box::new(Clients::new(
            clients.clone(),
            guard,
            Arc::new(clock.clone()),
        )),
        deliveries: Box::new(Deliveries::new(
            clients,
            history,
            queues,
            Arc::new(clock.clone()),
        )),
        answers: Box::new(DynamoDbIdempotency::new(client(&database), MAIN.name)),
        now: Box::new(move || clock.now()),
    })
}

impl HttpApi {
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Lets requests end, then stops.
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
