//! Forwards requests to the engine, which has its own server, and rejects what DynamoDB rejects and the engine accepts.

use std::net::SocketAddr;

use antumbra_dynamodb::emulation::rejection;
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

/// DynamoDB's limit of a request.
const REQUEST_BYTES: usize = 16 * 1024 * 1024;

type Engine = (Client<HttpConnector, Body>, SocketAddr);

pub(super) fn router(engine: SocketAddr) -> Router {
    let client = Client::builder(TokioExecutor::new()).build_http();
    Router::new().fallback(forward).with_state((client, engine))
}

async fn forward(State((client, engine)): State<Engine>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let Ok(body) = axum::body::to_bytes(body, REQUEST_BYTES).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let target = head.headers.get("x-amz-target");
    let target = target.and_then(|target| target.to_str().ok());
    if let Some(rejected) = rejection(target.unwrap_or_default(), &body) {
        return (StatusCode::BAD_REQUEST, rejected.to_string()).into_response();
    }
    let mut request = Request::from_parts(head, Body::from(body));
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
