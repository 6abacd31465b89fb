//! Requests and responses as API Gateway has them.
//!
//! An HTTP API passes the path percent-decoded, and `lambda_http` takes it for an encoded one: the path would
//! end at a `#`, and another shadow than the caller named would be read or deleted. [`restore_path`] encodes
//! the gateway's text again.
//!
//! The decoded text does not show whether a `/`, a `?` or a `%` belongs to an id. Through API Gateway, callers
//! percent-encode ids with these characters twice; encoding every id twice is safe.

use std::pin::Pin;

use axum::http::uri::PathAndQuery;
use axum::http::{StatusCode, Uri};
use http_body_util::BodyExt as _;
use lambda_http::request::RequestContext;
use lambda_http::{Body, IntoResponse, Request, RequestExt, Response};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

/// Characters that are percent-encoded in a path. A `%` is treated separately.
const PATH: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// A response of the router for the gateway. All bodies of the API are UTF-8; `lambda_http` would decode them by the charset
/// of their content type, and add the tables of all charsets to the function.
pub struct Reply(pub Response<axum::body::Body>);

impl IntoResponse for Reply {
    fn into_response(self) -> Pin<Box<dyn Future<Output = Response<Body>> + Send>> {
        Box::pin(async {
            let (mut parts, body) = self.0.into_parts();
            let body = match body.collect().await {
                Ok(body) => match String::from_utf8(body.to_bytes().into()) {
                    Ok(text) => Body::Text(text),
                    Err(other) => Body::Binary(other.into_bytes()),
                },
                Err(error) => {
                    tracing::error!(%error, "the body of a response ended early");
                    parts.status = StatusCode::INTERNAL_SERVER_ERROR;
                    Body::Empty
                }
            };
            Response::from_parts(parts, body)
        })
    }
}

/// Replaces the path by the one that the caller sent.
pub fn restore_path(mut request: Request) -> Request {
    let path = request.raw_http_path();
    let path = without_stage(path, request.extensions().get());
    let mut text = encoded(path);
    if let Some(query) = request.uri().query() {
        text.push('?');
        text.push_str(query);
    }
    // An encoded path and a query that was read from a URI always parse.
    if let Ok(path) = text.parse::<PathAndQuery>() {
        *request.uri_mut() = Uri::from(path);
    }
    request
}

/// Removes the stage, which the gateway puts first unless it is the default stage.
fn without_stage<'a>(path: &'a str, context: Option<&RequestContext>) -> &'a str {
    let stage = match context {
        Some(RequestContext::ApiGatewayV2(context)) => context.stage.as_deref(),
        _ => None,
    };
    stage
        .filter(|stage| !stage.is_empty() && *stage != "$default")
        .and_then(|stage| path.strip_prefix('/')?.strip_prefix(stage))
        .filter(|rest| rest.starts_with('/'))
        .unwrap_or(path)
}

/// Returns the path as a caller encodes it; what is encoded already stays.
pub fn encoded(path: &str) -> String {
    let mut text = String::with_capacity(path.len() + 1);
    if !path.starts_with('/') {
        text.push('/');
    }
    let mut rest = path;
    while let Some((before, after)) = rest.split_once('%') {
        text.extend(utf8_percent_encode(before, PATH));
        let digits = after.as_bytes().get(..2);
        let sequence = digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        text.push_str(if sequence { "%" } else { "%25" });
        rest = after;
    }
    text.extend(utf8_percent_encode(rest, PATH));
    text
}
