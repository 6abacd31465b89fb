//! What a caller is told when a request comes to nothing: `application/problem+json`, RFC 9457.
//!
//! The code is stable and meant to be branched on; the detail is for people. What is our own fault is told
//! as that and no more: the reason goes to the log, once, here.

use antumbra_service::store::StoreError;
use axum::http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

/// The content type of a problem.
pub(crate) const CONTENT: &str = "application/problem+json";
/// How long a caller is asked to wait, in seconds, when it may try again.
const RETRY_SECONDS: u32 = 1;

/// What kind of problem it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub enum Code {
    /// The body is not JSON.
    InvalidJson,
    /// The path cannot be read.
    InvalidPath,
    /// The query cannot be read.
    InvalidQuery,
    /// A header cannot be read.
    InvalidHeader,
    /// What was sent makes no sense.
    Invalid,
    /// Nobody said who they are.
    Unauthorized,
    /// There is no such thing.
    NotFound,
    /// There is no such route.
    NoSuchRoute,
    /// The route does not take this method.
    MethodNotAllowed,
    /// Others were faster, again and again.
    Conflict,
    /// There is such a thing already, with other data.
    AlreadyExists,
    /// The client is linked to sensors.
    HasLinks,
    /// A request with this `Idempotency-Key` is under way.
    InFlight,
    /// The request was answered before, and the secret that it made has been replaced since.
    SecretReplaced,
    /// The thing has another version than `If-Match` says.
    PreconditionFailed,
    /// More bytes than are taken.
    TooLarge,
    /// The body is of another type.
    UnsupportedMediaType,
    /// The `Idempotency-Key` belongs to another request.
    KeyReused,
    /// Our own fault.
    Internal,
    /// Something we need is not there or has too much to do; worth trying again.
    Unavailable,
}

impl Code {
    /// The status that goes with it.
    pub fn status(self) -> StatusCode {
        match self {
            Code::InvalidJson
            | Code::InvalidPath
            | Code::InvalidQuery
            | Code::InvalidHeader
            | Code::Invalid => StatusCode::BAD_REQUEST,
            Code::Unauthorized => StatusCode::UNAUTHORIZED,
            Code::NotFound | Code::NoSuchRoute => StatusCode::NOT_FOUND,
            Code::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Code::Conflict
            | Code::AlreadyExists
            | Code::HasLinks
            | Code::InFlight
            | Code::SecretReplaced => StatusCode::CONFLICT,
            Code::PreconditionFailed => StatusCode::PRECONDITION_FAILED,
            Code::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Code::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Code::KeyReused => StatusCode::UNPROCESSABLE_ENTITY,
            Code::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    fn title(self) -> &'static str {
        match self {
            Code::InvalidJson => "The body is not JSON",
            Code::InvalidPath => "The path cannot be read",
            Code::InvalidQuery => "The query cannot be read",
            Code::InvalidHeader => "A header cannot be read",
            Code::Invalid => "The request makes no sense",
            Code::Unauthorized => "Credentials are missing or not valid",
            Code::NotFound => "There is no such thing",
            Code::NoSuchRoute => "There is no such route",
            Code::MethodNotAllowed => "The route does not take this method",
            Code::Conflict => "Others were faster",
            Code::AlreadyExists => "It exists already",
            Code::HasLinks => "The client has links",
            Code::InFlight => "The same request is under way",
            Code::SecretReplaced => "The secret has been replaced",
            Code::PreconditionFailed => "Another version is stored",
            Code::TooLarge => "Too large",
            Code::UnsupportedMediaType => "The body is of another type",
            Code::KeyReused => "The key belongs to another request",
            Code::Internal => "Internal error",
            Code::Unavailable => "Not available at the moment",
        }
    }

    fn name(self) -> String {
        format!("{self:?}")
    }
}

/// A problem, ready to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    code: Code,
    detail: String,
    header: Option<(HeaderName, HeaderValue)>,
}

/// What every answer that is no success says.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Problem, example = json!({
    "type": "urn:antumbra:problem:NotFound",
    "title": "There is no such thing",
    "status": 404,
    "detail": "no shadow lamp-7/main",
    "code": "NotFound",
}))]
pub(crate) struct ProblemBody {
    /// A name for the kind of problem, as RFC 9457 wants it: the code as a URN.
    #[serde(rename = "type")]
    kind: String,
    /// What kind of problem it is, in words that are always the same.
    title: &'static str,
    /// The status code once more.
    #[schema(minimum = 400, maximum = 599)]
    status: u16,
    /// What is wrong this time.
    detail: String,
    /// What kind of problem it is, to branch on.
    code: Code,
}

impl Problem {
    /// A problem of a kind, with what is wrong this time.
    pub fn new(code: Code, detail: impl Into<String>) -> Problem {
        Problem {
            code,
            detail: detail.into(),
            header: None,
        }
    }

    /// Our own fault: the reason is logged and not told.
    pub(crate) fn internal(reason: impl std::fmt::Display) -> Problem {
        tracing::error!(%reason, "a request failed");
        Problem::new(Code::Internal, "the request could not be handled")
    }

    /// Somebody else's fault that may pass: the reason is logged and not told.
    pub(crate) fn unavailable(reason: impl std::fmt::Display) -> Problem {
        tracing::warn!(%reason, "a request could not be served");
        Problem::new(Code::Unavailable, "try again in a moment").with_retry()
    }

    pub(crate) fn with_retry(self) -> Problem {
        self.with(RETRY_AFTER, HeaderValue::from(RETRY_SECONDS))
    }

    /// Says how to come in.
    pub(crate) fn unauthorized(detail: &str, challenge: &'static str) -> Problem {
        let challenge = HeaderValue::from_static(challenge);
        Problem::new(Code::Unauthorized, detail).with(WWW_AUTHENTICATE, challenge)
    }

    fn with(mut self, name: HeaderName, value: HeaderValue) -> Problem {
        self.header = Some((name, value));
        self
    }

    /// What kind it is.
    pub fn code(&self) -> Code {
        self.code
    }

    /// What is wrong this time.
    pub fn detail(&self) -> &str {
        &self.detail
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.code.status();
        let body = ProblemBody {
            kind: format!("urn:antumbra:problem:{}", self.code.name()),
            title: self.code.title(),
            status: status.as_u16(),
            detail: self.detail,
            code: self.code,
        };
        let body = serde_json::to_vec(&body).unwrap_or_default();
        let mut response = (status, [(CONTENT_TYPE, CONTENT)], body).into_response();
        if let Some((name, value)) = self.header {
            response.headers_mut().insert(name, value);
        }
        response
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Problem {
        match error {
            StoreError::NotFound => Problem::new(Code::NotFound, error.to_string()),
            StoreError::Conflict { .. } => Problem::new(Code::Conflict, error.to_string()),
            StoreError::Invalid(reason) => Problem::new(Code::Invalid, reason),
            StoreError::TooLarge { .. } => Problem::new(Code::TooLarge, error.to_string()),
            StoreError::Throttled | StoreError::Unavailable(_) => Problem::unavailable(error),
        }
    }
}

/// There is no such route.
pub(crate) async fn no_such_route() -> Problem {
    Problem::new(
        Code::NoSuchRoute,
        "no route of this API has this path; ids in a path are percent-encoded",
    )
}

/// The route is there, but not for this method. The router adds which it takes.
pub(crate) async fn method_not_allowed() -> Problem {
    Problem::new(
        Code::MethodNotAllowed,
        format!("the header {ALLOW} names the methods of this route"),
    )
}
