//! The HTTP API: the router that runs behind API Gateway, on a port of its own and with bearer tokens; and the console beside
//! it.

use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, RwLock};

use antumbra_console::Console;
use antumbra_http_api::{
    AuthMode, Config, NAME, RegistrationFiles, TokenGrants, router, services as use_cases,
};
use antumbra_lambda_kit::functions::spec;
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

/// Names and texts of the files of the registrations in force.
pub(super) type InForce = Arc<RwLock<Arc<[(String, String)]>>>;

/// Starts the API and the console, and returns their address.
pub(super) async fn start(
    services: &LocalServices,
    port: u16,
    tokens: Vec<TokenGrants>,
    registrations: InForce,
    streams: &[String],
) -> Result<(SocketAddr, Running, Arc<Console>), StackError> {
    let (listener, address) = bind("HTTP", port).await?;
    // Each request passes through a function that does nothing, so that tests can make it fail.
    let called = Function::new(NAME, spec(NAME).timeout, |event| async { Ok(event) });
    let called = (services.wrap)(called);
    let sdk = services.sdk_of(NAME);
    let clock = Arc::new(services.clock.clone());
    let config = Config {
        registrations: RegistrationFiles::new(move || {
            let files = registrations.read().unwrap_or_else(PoisonError::into_inner);
            Ok(Arc::clone(&files))
        }),
        streams: true,
        ..services.config(NAME)?
    };
    let use_cases = Arc::new(use_cases(config, &sdk, clock));
    let router = router(Arc::clone(&use_cases), AuthMode::Tokens(tokens));
    let router = router.layer(from_fn(move |request: Request, next: Next| {
        let called = called.clone();
        async move { through(&called, request, next).await }
    }));
    let console = super::console::console(use_cases, services.sdk(), streams.to_vec(), address);
    // The API keeps all paths that are no page.
    let router = antumbra_console::console(Arc::clone(&console)).fallback_service(router);
    let hosts = services.hosts.clone();
    let server = Running::start(|stop| serve(listener, router, hosts, stop));
    Ok((address, server, console))
}

/// Responds with 502 if the function fails, as API Gateway does.
async fn through(called: &Function, request: Request, next: Next) -> Response {
    if let Err(error) = called.invoke(Bytes::new()).await {
        tracing::warn!(function = NAME, %error, "the function failed");
        return (StatusCode::BAD_GATEWAY, "the function failed").into_response();
    }
    next.run(request).await
}
