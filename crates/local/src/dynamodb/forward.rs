//! Forwards requests to the engine, which has its own server.

use std::net::SocketAddr;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::ORIGIN;
use axum::http::uri::{Authority, Scheme};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

type Engine = (Client<HttpConnector, Body>, SocketAddr);

pub(super) fn router(engine: SocketAddr) -> Router {
    let client = Client::builder(TokioExecutor::new()).build_http();
    Router::new().fallback(forward).with_state((client, engine))
}

async fn forward(State((client, engine)): State<Engine>, mut request: Request) -> Response {
    let mut uri = request.uri().clone().into_parts();
    uri.scheme = Some(Scheme::HTTP);
    uri.authority = engine.to_string().parse::<Authority>().ok();
    let Ok(uri) = Uri::from_parts(uri) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    *request.uri_mut() = uri;
    // The engine would allow the page to read the response.
    request.headers_mut().remove(ORIGIN);
    match client.request(request).await {
        Ok(response) => response.map(Body::new),
        Err(error) => {
            tracing::warn!(%error, "DynamoDB request not forwarded");
            StatusCode::BAD_GATEWAY.into_response()
        }
    }
}
