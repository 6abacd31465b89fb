//! The HTTP API: the router that runs behind API Gateway, on a port of its own and with a bearer token.

use std::net::SocketAddr;
use std::sync::Arc;

use antumbra_dynamodb::{MAIN, MESSAGES, SensorConfig};
use antumbra_http_api::{AuthMode, Config, NAME, Token, build};
use antumbra_lambda_kit::config::default_merge_model;
use antumbra_lambda_kit::functions::{queues, spec};
use antumbra_publish::sqs::SMALL_BYTES;
use antumbra_publish::webhook::Allow;
use antumbra_service::sensors::ValueType;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;

use super::{LocalServices, StackError};
use crate::function::Function;
use crate::http::serve;
use crate::listen::bind;
use crate::task::Running;

/// Starts the API and returns its address. `allow` lists webhook endpoints that are allowed beside the public internet.
pub(super) async fn start(
    services: &LocalServices,
    port: u16,
    token: &str,
    allow: Allow,
    signal_values: ValueType,
) -> Result<(SocketAddr, Running), StackError> {
    let (listener, address) = bind("HTTP", port).await?;
    // Each request passes through a function that does nothing, so that tests can make it fail.
    let called = Function::new(NAME, spec(NAME).timeout, |event| async { Ok(event) });
    let called = (services.wrap)(called);
    let sdk = services.sdk_of(NAME);
    let clock = Arc::new(services.clock.clone());
    let router = build(
        Config {
            signal_values,
            ..config(services, token, allow)
        },
        &sdk,
        clock,
    );
    let router = router.layer(from_fn(move |request: Request, next: Next| {
        let called = called.clone();
        async move { through(&called, request, next).await }
    }));
    let hosts = services.hosts.clone();
    let server = Running::start(|stop| serve(listener, router, hosts, stop));
    Ok((address, server))
}

/// Responds with 502 if the function fails, as API Gateway does.
async fn through(called: &Function, request: Request, next: Next) -> Response {
    if let Err(error) = called.invoke(Bytes::new()).await {
        tracing::warn!(function = NAME, %error, "the function failed");
        return (StatusCode::BAD_GATEWAY, "the function failed").into_response();
    }
    next.run(request).await
}

fn config(services: &LocalServices, token: &str, allow: Allow) -> Config {
    Config {
        table: MAIN.name.to_owned(),
        messages_table: MESSAGES.name.to_owned(),
        ordered_queue_url: services.queues.queue_url(queues::DELIVERIES_FIFO),
        unordered_queue_url: services.queues.queue_url(queues::DELIVERIES),
        queue_bytes: SMALL_BYTES,
        auth: AuthMode::Token(Token::new(token)),
        webhook_allow: allow,
        sensors: SensorConfig::new(MAIN.name),
        signal_values: ValueType::default(),
        model: default_merge_model(),
        layout: services.layout,
    }
}
