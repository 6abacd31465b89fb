//! The body of a request: JSON, of a bounded size.

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;

use crate::problem::{Code, Problem};

/// Bytes of a body: more than any item of the table holds.
const BODY_BYTES: usize = 1024 * 1024;

/// A body as it came; that it is called JSON is checked, that it is JSON is not.
pub(crate) struct RawBody(pub(crate) Bytes);

impl<S: Send + Sync> FromRequest<S> for RawBody {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        check_type(request.headers())?;
        Ok(RawBody(
            read_body(request.headers().clone(), request.into_body()).await?,
        ))
    }
}

/// A body as a type of ours. Members that the type does not have are refused.
pub(crate) struct JsonBody<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for JsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let RawBody(bytes) = RawBody::from_request(request, state).await?;
        serde_json::from_slice(&bytes)
            .map(JsonBody)
            .map_err(|fault| {
                let code = if fault.is_data() {
                    Code::Invalid
                } else {
                    Code::InvalidJson
                };
                Problem::new(code, fault.to_string())
            })
    }
}

/// Reads a body to its end, or to the limit.
pub(crate) async fn read_body(headers: HeaderMap, body: Body) -> Result<Bytes, Problem> {
    let said = headers.get(CONTENT_LENGTH);
    let said = said.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if said.is_some_and(|bytes| bytes > BODY_BYTES as u64) {
        return Err(too_large());
    }
    match Limited::new(body, BODY_BYTES).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(fault) if fault.is::<LengthLimitError>() => Err(too_large()),
        Err(_) => Err(Problem::new(Code::Invalid, "the body ended too early")),
    }
}

fn too_large() -> Problem {
    let detail = format!("the body has more than {BODY_BYTES} bytes, which is the limit");
    Problem::new(Code::TooLarge, detail)
}

fn check_type(headers: &HeaderMap) -> Result<(), Problem> {
    let refuse = |detail: &str| Err(Problem::new(Code::UnsupportedMediaType, detail));
    if headers.contains_key(CONTENT_ENCODING) {
        return refuse("the body must not be compressed");
    }
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    let kind = kind.map(|kind| kind.split(';').next().unwrap_or_default().trim());
    match kind {
        Some(kind) if kind.eq_ignore_ascii_case("application/json") => Ok(()),
        Some(kind) if kind.eq_ignore_ascii_case("application/merge-patch+json") => Ok(()),
        Some(_) => refuse("the body must be application/json"),
        None => refuse("the header content-type is missing; it must be application/json"),
    }
}
