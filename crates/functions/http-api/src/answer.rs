//! A request that came to something: status, headers and JSON.

use antumbra_service::clients::{ClientId, Secret};
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
    secret: Option<Told>,
}

/// The secret of a client that an answer tells: nobody may keep a copy, on the way or here.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    pub(crate) client: ClientId,
    pub(crate) secret: Secret,
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

    /// Tells a client's secret.
    pub(crate) fn telling(mut self, client: ClientId, secret: Secret) -> Answer {
        self.secret = Some(Told { client, secret });
        self
    }

    fn json(status: StatusCode, body: &impl Serialize) -> Result<Answer, Problem> {
        Ok(Answer {
            status,
            headers: Vec::new(),
            body: Some(serde_json::to_vec(body).map_err(Problem::internal)?),
            secret: None,
        })
    }

    fn empty(status: StatusCode) -> Answer {
        Answer {
            status,
            headers: Vec::new(),
            body: None,
            secret: None,
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
        let copies = if tagged && self.secret.is_none() {
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
        if let Some(told) = self.secret {
            response.extensions_mut().insert(told);
        }
        response
    }
}
