//! Error responses: `application/problem+json` (RFC 9457).
//!
//! Callers branch on the stable code; the detail is for people. The reason of an internal failure goes to the
//! log and not to the caller.

use antumbra_service::api::BulkError;
use antumbra_service::clients::ClientError;
use antumbra_service::deliveries::RedeliverError;
use antumbra_service::history::feed::FeedError;
use antumbra_service::sensors::{InvalidSensor, SensorError};
use antumbra_service::shadows::ShadowError;
use antumbra_service::store::{ErrorClass, StoreError};
use antumbra_shadow::DocumentError;
use axum::http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

pub(crate) const CONTENT: &str = "application/problem+json";
const RETRY_SECONDS: u32 = 1;

macro_rules! codes {
    ($($code:ident $status:ident $title:literal;)+) => {
        /// Kind of a problem.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
        pub enum Code {
            $(#[doc = $title] $code,)+
        }

        impl Code {
            /// Returns the HTTP status of responses with this code.
            pub fn status(self) -> StatusCode {
                match self {
                    $(Code::$code => StatusCode::$status,)+
                }
            }

            fn title(self) -> &'static str {
                match self {
                    $(Code::$code => $title,)+
                }
            }

            pub(crate) fn as_str(self) -> &'static str {
                match self {
                    $(Code::$code => stringify!($code),)+
                }
            }
        }
    };
}

codes! {
    InvalidJson BAD_REQUEST "The body is not JSON";
    InvalidPath BAD_REQUEST "The path is invalid";
    InvalidQuery BAD_REQUEST "The query is invalid";
    InvalidHeader BAD_REQUEST "A header is invalid";
    Invalid BAD_REQUEST "The request is invalid";
    Unauthorized UNAUTHORIZED "Credentials are missing or invalid";
    Forbidden FORBIDDEN "A grant is missing";
    NotFound NOT_FOUND "The resource does not exist";
    DidNotExist NOT_FOUND "The shadow did not exist at that time";
    NotRecorded NOT_FOUND "The state at that time is not recorded";
    HistoryOff NOT_FOUND "The history is switched off";
    FeedOff NOT_FOUND "The change feed is switched off";
    NoSuchRoute NOT_FOUND "The route does not exist";
    MethodNotAllowed METHOD_NOT_ALLOWED "The route does not support this method";
    Conflict CONFLICT "Concurrent writes were faster";
    AlreadyExists CONFLICT "The resource exists already";
    AlreadyRegistered CONFLICT "The sensor is registered already";
    HasLinks CONFLICT "The client is linked to sensors";
    InFlight CONFLICT "A request with this Idempotency-Key is in progress";
    SecretReplaced CONFLICT "The secret that this request created has been replaced";
    BeforeRetention GONE "The time is before everything that is kept";
    CursorExpired GONE "Changes behind the cursor have expired";
    PreconditionFailed PRECONDITION_FAILED "The stored version is another one";
    TooLarge PAYLOAD_TOO_LARGE "The request is too large";
    UnsupportedMediaType UNSUPPORTED_MEDIA_TYPE "The content type is not supported";
    KeyReused UNPROCESSABLE_ENTITY "The Idempotency-Key belongs to another request";
    Internal INTERNAL_SERVER_ERROR "Internal error";
    Unavailable SERVICE_UNAVAILABLE "Temporarily unavailable";
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    code: Code,
    detail: String,
    header: Option<(HeaderName, HeaderValue)>,
    oldest_cursor: Option<Box<str>>,
}

/// The body of every error response.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Problem, example = json!({
    "type": "urn:antumbra:problem:NotFound",
    "title": "The resource does not exist",
    "status": 404,
    "detail": "no such shadow",
    "code": "NotFound",
}))]
pub(crate) struct ProblemBody {
    /// The code as a URN.
    #[serde(rename = "type")]
    urn: String,
    /// Title of the code, always the same.
    title: &'static str,
    /// HTTP status.
    #[schema(minimum = 400, maximum = 599)]
    status: u16,
    /// Reason of this failure, for people.
    detail: String,
    /// Kind of the problem, to branch on.
    code: Code,
    /// With `CursorExpired`: the oldest cursor from which changes can be read.
    #[serde(rename = "oldestCursor", skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    oldest_cursor: Option<String>,
}

impl Problem {
    pub fn new(code: Code, detail: impl Into<String>) -> Problem {
        Problem {
            code,
            detail: detail.into(),
            header: None,
            oldest_cursor: None,
        }
    }

    /// A failure of this program. Logs the reason and does not show it to the caller.
    pub(crate) fn internal(reason: impl std::fmt::Display) -> Problem {
        tracing::error!(%reason, "request failed");
        Problem::new(Code::Internal, "the request could not be handled")
    }

    /// A failure of another service that may pass. Logs the reason and does not show it to the caller.
    pub(crate) fn unavailable(reason: impl std::fmt::Display) -> Problem {
        tracing::warn!(%reason, "request could not be served");
        Problem::new(Code::Unavailable, "try again in a moment").with_retry()
    }

    pub(crate) fn with_retry(self) -> Problem {
        self.with(RETRY_AFTER, HeaderValue::from(RETRY_SECONDS))
    }

    /// A request without valid credentials, and the challenge for the caller.
    pub(crate) fn unauthorized(detail: &str, challenge: &'static str) -> Problem {
        let challenge = HeaderValue::from_static(challenge);
        Problem::new(Code::Unauthorized, detail).with(WWW_AUTHENTICATE, challenge)
    }

    fn with(mut self, name: HeaderName, value: HeaderValue) -> Problem {
        self.header = Some((name, value));
        self
    }

    /// The problem of one item of a request with many.
    pub(crate) fn in_bulk(&self) -> BulkError {
        BulkError {
            code: self.code.as_str().to_owned(),
            detail: self.detail.clone(),
        }
    }

    pub fn code(&self) -> Code {
        self.code
    }

    pub fn detail(&self) -> &str {
        &self.detail
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.code.status();
        let body = ProblemBody {
            urn: format!("urn:antumbra:problem:{}", self.code.as_str()),
            title: self.code.title(),
            status: status.as_u16(),
            detail: self.detail,
            code: self.code,
            oldest_cursor: self.oldest_cursor.map(String::from),
        };
        let body = serde_json::to_vec(&body).unwrap_or_default();
        let mut response = (status, [(CONTENT_TYPE, CONTENT)], body).into_response();
        response.headers_mut().extend(self.header);
        response
    }
}

impl Problem {
    /// The problem of each error class.
    fn of_class(class: ErrorClass, error: impl ToString) -> Problem {
        let code = match class {
            ErrorClass::Invalid => Code::Invalid,
            ErrorClass::TooLarge => Code::TooLarge,
            ErrorClass::NotFound => Code::NotFound,
            ErrorClass::Conflict => {
                return Problem::new(Code::Conflict, error.to_string()).with_retry();
            }
            ErrorClass::Unavailable => return Problem::unavailable(error.to_string()),
        };
        Problem::new(code, error.to_string())
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Problem {
        match error {
            StoreError::Invalid(reason) => Problem::new(Code::Invalid, reason),
            _ => Problem::of_class(error.class(), error),
        }
    }
}

impl From<FeedError> for Problem {
    fn from(error: FeedError) -> Problem {
        let detail = error.to_string();
        match error {
            FeedError::InvalidCursor => Problem::new(Code::InvalidQuery, detail),
            FeedError::Expired { oldest } => Problem {
                oldest_cursor: Some(oldest.0.into()),
                ..Problem::new(Code::CursorExpired, detail)
            },
            FeedError::Store(error) => error.into(),
        }
    }
}

impl From<ClientError> for Problem {
    fn from(error: ClientError) -> Problem {
        match error {
            ClientError::AlreadyExists => Problem::new(Code::AlreadyExists, error.to_string()),
            ClientError::HasLinks => Problem::new(Code::HasLinks, error.to_string()),
            ClientError::SecretReplaced => Problem::new(Code::SecretReplaced, error.to_string()),
            ClientError::Store(error) => error.into(),
            _ => Problem::of_class(error.class(), error),
        }
    }
}

impl From<RedeliverError> for Problem {
    fn from(error: RedeliverError) -> Problem {
        match error {
            RedeliverError::Client(error) => error.into(),
            RedeliverError::Store(error) => error.into(),
            _ => Problem::of_class(error.class(), error),
        }
    }
}

impl From<SensorError> for Problem {
    fn from(error: SensorError) -> Problem {
        match error {
            SensorError::AlreadyRegistered => {
                Problem::new(Code::AlreadyRegistered, error.to_string())
            }
            SensorError::NotFound => Problem::new(Code::NotFound, "no such sensor"),
            SensorError::Store(error) => error.into(),
            _ => Problem::of_class(error.class(), error),
        }
    }
}

impl From<InvalidSensor> for Problem {
    fn from(error: InvalidSensor) -> Problem {
        Problem::new(Code::Invalid, error.to_string())
    }
}

impl From<ShadowError> for Problem {
    fn from(error: ShadowError) -> Problem {
        match error {
            ShadowError::Document(error) => error.into(),
            ShadowError::Id(error) => Problem::new(Code::InvalidPath, error.to_string()),
            _ if error.is_not_found() => Problem::new(Code::NotFound, "no such shadow"),
            ShadowError::Store { error, .. } => error.into(),
        }
    }
}

impl From<DocumentError> for Problem {
    fn from(error: DocumentError) -> Problem {
        let code = match error {
            DocumentError::Syntax(_) | DocumentError::NotUtf8 { .. } => Code::InvalidJson,
            DocumentError::TooLong { .. } => Code::TooLarge,
            _ => Code::Invalid,
        };
        Problem::new(code, error.to_string())
    }
}

pub(crate) fn no_such_route() -> Problem {
    Problem::new(
        Code::NoSuchRoute,
        "no route has this path; ids in a path must be percent-encoded",
    )
}

/// Response to a route's path with another method. `allowed` lists the methods of the path.
pub(crate) fn method_not_allowed(allowed: &str) -> Problem {
    let detail = format!("the header {ALLOW} lists the methods of this route");
    let problem = Problem::new(Code::MethodNotAllowed, detail);
    match HeaderValue::from_str(allowed) {
        Ok(allowed) => problem.with(ALLOW, allowed),
        Err(_) => problem,
    }
}
