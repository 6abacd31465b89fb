//! Parts of successful responses: JSON, entity tags, locations and secrets.

use antumbra_service::clients::ClientId;
use axum::extract::Request;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, LOCATION};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, IntoResponseParts, Response, ResponseParts};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;

use crate::conditions::check_read;
use crate::problem::Problem;
use crate::routes::Next;

/// Characters that are percent-encoded in a path segment.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~')
    .remove(b':');

/// A JSON body, of a request or of a response.
pub(crate) struct Json<T>(pub(crate) T);

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        match serde_json::to_vec(&self.0) {
            Ok(body) => ([(CONTENT_TYPE, "application/json")], body).into_response(),
            Err(error) => Problem::internal(error).into_response(),
        }
    }
}

/// The entity tag of the returned representation. Caches may keep it and must revalidate.
pub(crate) struct ETag(String);

impl ETag {
    pub(crate) fn new(tag: impl ToString) -> ETag {
        ETag(tag.to_string())
    }
}

impl IntoResponseParts for ETag {
    type Error = Problem;

    fn into_response_parts(self, mut parts: ResponseParts) -> Result<ResponseParts, Problem> {
        insert(&mut parts, ETAG, &format!("\"{}\"", self.0))?;
        insert(&mut parts, CACHE_CONTROL, "private, no-cache")?;
        Ok(parts)
    }
}

/// Marks a response whose JSON member `secret` holds the secret of this client. No cache may keep it, and
/// idempotency stores the response without it.
#[derive(Debug, Clone)]
pub(crate) struct HoldsSecretOf(pub(crate) ClientId);

impl IntoResponseParts for HoldsSecretOf {
    type Error = Problem;

    fn into_response_parts(self, mut parts: ResponseParts) -> Result<ResponseParts, Problem> {
        insert(&mut parts, CACHE_CONTROL, "no-store")?;
        parts.extensions_mut().insert(self);
        Ok(parts)
    }
}

pub(crate) struct Location(String);

impl Location {
    pub(crate) fn new(collection: &str, id: &str) -> Location {
        Location(format!("{collection}/{}", utf8_percent_encode(id, SEGMENT)))
    }
}

impl IntoResponseParts for Location {
    type Error = Problem;

    fn into_response_parts(self, mut parts: ResponseParts) -> Result<ResponseParts, Problem> {
        insert(&mut parts, LOCATION, &self.0)?;
        Ok(parts)
    }
}

fn insert(parts: &mut ResponseParts, name: HeaderName, value: &str) -> Result<(), Problem> {
    let value = HeaderValue::from_str(value).map_err(Problem::internal)?;
    parts.headers_mut().insert(name, value);
    Ok(())
}

pub(crate) struct Created<R>(pub(crate) Location, pub(crate) R);

impl<R: IntoResponse> IntoResponse for Created<R> {
    fn into_response(self) -> Response {
        (StatusCode::CREATED, self.0, self.1).into_response()
    }
}

pub(crate) struct Accepted<R>(pub(crate) R);

impl<R: IntoResponse> IntoResponse for Accepted<R> {
    fn into_response(self) -> Response {
        (StatusCode::ACCEPTED, self.0).into_response()
    }
}

pub(crate) enum Either<A, B> {
    A(A),
    B(B),
}

impl<A: IntoResponse, B: IntoResponse> IntoResponse for Either<A, B> {
    fn into_response(self) -> Response {
        match self {
            Either::A(response) => response.into_response(),
            Either::B(response) => response.into_response(),
        }
    }
}

/// Compares the tag of a response to a GET with the conditions of the request, and forbids caching of
/// responses without a tag.
pub(crate) async fn cache_control(request: Request, next: Next) -> Response {
    let reads = *request.method() == Method::GET;
    let headers = reads.then(|| request.headers().clone());
    let mut response = next(request).await;
    if !response.status().is_success() {
        return response;
    }
    let tag = response.headers().get(ETAG).cloned();
    if let (Some(headers), Some(tag)) = (headers, tag) {
        match check_read(&headers, &tag) {
            Ok(false) => {}
            Ok(true) => {
                let kept = [ETAG, CACHE_CONTROL]
                    .map(|name| (name.clone(), response.headers_mut().remove(name)));
                response = StatusCode::NOT_MODIFIED.into_response();
                for (name, value) in kept {
                    response
                        .headers_mut()
                        .extend(value.map(|value| (name, value)));
                }
            }
            Err(problem) => return problem.into_response(),
        }
    }
    let no_store = HeaderValue::from_static("no-store");
    response
        .headers_mut()
        .entry(CACHE_CONTROL)
        .or_insert(no_store);
    response
}
