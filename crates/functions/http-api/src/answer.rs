//! A request that came to something: status, headers and JSON.

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, LOCATION};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;

use crate::problem::Problem;

/// What cannot stand in a segment of a path as it is.
const NOT_IN_SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~')
    .remove(b':');

/// A name as a segment of a path.
pub(crate) fn segment(name: &str) -> String {
    utf8_percent_encode(name, NOT_IN_SEGMENT).to_string()
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    status: StatusCode,
    headers: Vec<(HeaderName, String)>,
    body: Option<Vec<u8>>,
    /// Whether nobody may keep a copy.
    secret: bool,
}

impl Answer {
    /// Here it is.
    pub(crate) fn ok(body: &impl Serialize) -> Result<Answer, Problem> {
        Answer::json(StatusCode::OK, body)
    }

    /// It was made.
    pub(crate) fn created(body: &impl Serialize, location: String) -> Result<Answer, Problem> {
        let mut answer = Answer::json(StatusCode::CREATED, body)?;
        answer.headers.push((LOCATION, location));
        Ok(answer)
    }

    /// It will be done.
    pub(crate) fn accepted(body: &impl Serialize) -> Result<Answer, Problem> {
        Answer::json(StatusCode::ACCEPTED, body)
    }

    /// It is done, and there is nothing to say.
    pub(crate) fn no_content() -> Answer {
        Answer::empty(StatusCode::NO_CONTENT)
    }

    /// The caller has it already.
    pub(crate) fn not_modified(tag: &str) -> Answer {
        Answer::empty(StatusCode::NOT_MODIFIED).tagged(tag)
    }

    /// Says which version it is.
    pub(crate) fn tagged(mut self, tag: &str) -> Answer {
        self.headers.push((ETAG, format!("\"{tag}\"")));
        self
    }

    /// Holds a secret, which nobody on the way may keep.
    pub(crate) fn secret(mut self) -> Answer {
        self.secret = true;
        self
    }

    fn json(status: StatusCode, body: &impl Serialize) -> Result<Answer, Problem> {
        Ok(Answer {
            status,
            headers: Vec::new(),
            body: Some(serde_json::to_vec(body).map_err(Problem::internal)?),
            secret: false,
        })
    }

    fn empty(status: StatusCode) -> Answer {
        Answer {
            status,
            headers: Vec::new(),
            body: None,
            secret: false,
        }
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = self.status;
        if let Some(body) = self.body {
            *response.body_mut() = Body::from(body);
            let json = HeaderValue::from_static("application/json");
            response.headers_mut().insert(CONTENT_TYPE, json);
        }
        let headers = response.headers_mut();
        // With a tag, a copy may be kept and asked for again; without, there is no use for one.
        let tagged = self.headers.iter().any(|(name, _)| name == ETAG);
        let copies = if tagged && !self.secret {
            "private, no-cache"
        } else {
            "no-store"
        };
        headers.insert(CACHE_CONTROL, HeaderValue::from_static(copies));
        for (name, value) in self.headers {
            // Both are made of percent-encoded text and numbers.
            if let Ok(value) = HeaderValue::from_str(&value) {
                headers.insert(name, value);
            }
        }
        response
    }
}
