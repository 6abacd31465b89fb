//! The parts of a path that name things.

use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequestParts, Path, Request};
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;

use crate::problem::{Code, Problem};

/// The parts of a path, percent-decoded.
pub(crate) struct PathParts<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for PathParts<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Path::from_request_parts(parts, state).await {
            Ok(Path(parts)) => Ok(PathParts(parts)),
            Err(PathRejection::FailedToDeserializePathParams(fault)) => {
                Err(Problem::new(Code::InvalidPath, fault.body_text()))
            }
            Err(fault) => Err(Problem::internal(fault)),
        }
    }
}

/// Refuses a path with a `%` that starts nothing: what it stands for would be a guess.
pub(crate) async fn check_path(request: Request, next: Next) -> Response {
    let path = request.uri().path().as_bytes();
    let escaped = |at: usize| {
        let digits = path.get(at + 1..at + 3);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    let stray = (0..path.len()).find(|&at| path[at] == b'%' && !escaped(at));
    if let Some(at) = stray {
        let detail = format!("the % at byte {at} of the path is not followed by two hex digits");
        return Problem::new(Code::InvalidPath, detail).into_response();
    }
    next.run(request).await
}
