//! Extractors: path parameters, queries and bodies, each with its own problem code.

use antumbra_service::paging::Cursor;
use antumbra_shadow::Timestamp;
use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use utoipa::IntoParams;

use crate::problem::{Code, Problem};
use crate::respond::Json;

/// Maximum size of a body: more than any item of the table can hold.
const BODY_BYTES: usize = 1024 * 1024;
const MAX_LIMIT: usize = 1000;
const DEFAULT_LIMIT: usize = 100;

/// A value that a route's path names by one or more parameters.
pub(crate) trait FromPath: Sized {
    /// All parameters that a route of this value may have.
    const PARAMETERS: &'static [PathParameter];

    /// Parses the percent-decoded parameters. Routes of the value may lack some of them.
    fn from_path<'a>(get: impl Fn(&str) -> Option<&'a str>) -> Result<Self, String>;
}

/// A path parameter, as the OpenAPI document describes it.
pub(crate) struct PathParameter {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    pub(crate) max_length: usize,
    pub(crate) pattern: Option<&'static str>,
    pub(crate) example: Option<&'static str>,
}

/// The percent-decoded parameters in the path of a request, or the name of one that is not UTF-8.
#[derive(Debug, Clone)]
pub(crate) struct PathParameters(Result<Vec<(&'static str, String)>, &'static str>);

impl PathParameters {
    /// Reads them by the path of a route, such as `/v1/shadows/{id}`. `None` if the path does not fit.
    pub(crate) fn find(route: &'static str, path: &str) -> Option<PathParameters> {
        let mut segments = path.split('/');
        let mut found = Vec::new();
        for name in route.split('/') {
            let segment = segments.next()?;
            match name
                .strip_prefix('{')
                .and_then(|name| name.strip_suffix('}'))
            {
                Some(parameter) => found.push((parameter, segment)),
                None if name == segment => {}
                None => return None,
            }
        }
        // `/v1/shadows/` is the path of no shadow.
        if segments.next().is_some() || path.ends_with('/') {
            return None;
        }
        let decoded = found.into_iter().map(|(name, segment)| {
            let text = percent_decode_str(segment).decode_utf8();
            text.map(|text| (name, text.into_owned())).map_err(|_| name)
        });
        Some(PathParameters(decoded.collect()))
    }

    /// Returns the parameters of a request.
    pub(crate) fn of(extensions: &Extensions) -> Result<&PathParameters, Problem> {
        let none = || Problem::internal("the request has no route");
        let parameters: &PathParameters = extensions.get().ok_or_else(none)?;
        match parameters.0 {
            Ok(_) => Ok(parameters),
            Err(name) => {
                let detail = format!("Invalid UTF-8 in `{name}`");
                Err(Problem::new(Code::InvalidPath, detail))
            }
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let mut parameters = self.0.iter().flatten();
        let found = parameters.find(|(parameter, _)| *parameter == name);
        found.map(|(_, value)| value.as_str())
    }
}

pub(crate) struct Path<T>(pub(crate) T);

impl<T: FromPath, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let parameters = PathParameters::of(&parts.extensions)?;
        let value = T::from_path(|name| parameters.get(name));
        let invalid = |fault: String| Problem::new(Code::InvalidPath, fault);
        value.map(Path).map_err(invalid)
    }
}

/// Middleware: rejects a path with a `%` that starts no escape sequence.
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

/// The query. Unknown and repeated names are rejected.
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        use axum::extract::Query as AxumQuery;
        let query = AxumQuery::try_from_uri(&parts.uri);
        query.map(|AxumQuery(query)| Query(query)).map_err(|fault| {
            let text = fault.body_text();
            let detail = text.strip_prefix("Failed to deserialize query string: ");
            Problem::new(Code::InvalidQuery, detail.unwrap_or(&text))
        })
    }
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Paging {
    /// Maximum number of entries. A page can be shorter, also before the last one.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    pub(crate) limit: Option<usize>,
    /// `nextCursor` of the previous page.
    #[param(max_length = 16384, pattern = "^[A-Za-z0-9_-]*$")]
    pub(crate) cursor: Option<String>,
}

impl Paging {
    pub(crate) fn limit(&self) -> Result<usize, Problem> {
        limit(self.limit)
    }

    pub(crate) fn cursor(&self) -> Option<Cursor> {
        self.cursor.clone().map(Cursor)
    }
}

pub(crate) fn limit(limit: Option<usize>) -> Result<usize, Problem> {
    let limit = limit.unwrap_or(DEFAULT_LIMIT);
    if (1..=MAX_LIMIT).contains(&limit) {
        return Ok(limit);
    }
    let detail = format!("limit must be 1 to {MAX_LIMIT}, not {limit}");
    Err(Problem::new(Code::InvalidQuery, detail))
}

pub(crate) fn optional_time(
    name: &str,
    text: Option<String>,
) -> Result<Option<Timestamp>, Problem> {
    text.map(|text| time(name, &text)).transpose()
}

pub(crate) fn time(name: &str, text: &str) -> Result<Timestamp, Problem> {
    Timestamp::parse(text).ok_or_else(|| {
        let detail = format!("{name} must be a time such as 2026-01-31T12:00:00Z, not {text:?}");
        Problem::new(Code::InvalidQuery, detail)
    })
}

/// Checks the number of entries in a body.
pub(crate) fn check_count(what: &str, count: usize, max: usize) -> Result<(), Problem> {
    if (1..=max).contains(&count) {
        return Ok(());
    }
    let detail = format!("a request takes 1 to {max} {what}, not {count}");
    Err(Problem::new(Code::Invalid, detail))
}

/// The bytes of a body that is declared as JSON.
pub(crate) struct RawBody(pub(crate) Bytes);

impl<S: Send + Sync> FromRequest<S> for RawBody {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        check_content_type(request.headers())?;
        let (head, body) = request.into_parts();
        Ok(RawBody(read_body(&head.headers, body).await?))
    }
}

/// Unknown members of the JSON are rejected by its type.
impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let RawBody(bytes) = RawBody::from_request(request, state).await?;
        parse_json(&bytes).map(Json)
    }
}

pub(crate) fn parse_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(bytes).map_err(|fault| {
        let code = if fault.is_data() {
            Code::Invalid
        } else {
            Code::InvalidJson
        };
        Problem::new(code, fault.to_string())
    })
}

/// Reads a body up to the size limit.
pub(crate) async fn read_body(headers: &HeaderMap, body: Body) -> Result<Bytes, Problem> {
    let length = headers.get(CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|bytes| bytes > BODY_BYTES as u64) {
        return Err(too_large());
    }
    match Limited::new(body, BODY_BYTES).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(fault) if fault.is::<LengthLimitError>() => Err(too_large()),
        Err(_) => Err(Problem::new(Code::Invalid, "the body is incomplete")),
    }
}

fn too_large() -> Problem {
    let detail = format!("the body is larger than the limit of {BODY_BYTES} bytes");
    Problem::new(Code::TooLarge, detail)
}

pub(crate) fn check_content_type(headers: &HeaderMap) -> Result<(), Problem> {
    let unsupported = |detail: &str| Err(Problem::new(Code::UnsupportedMediaType, detail));
    if headers.contains_key(CONTENT_ENCODING) {
        return unsupported("the body must not be compressed");
    }
    let value = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let essence = value.map(|value| value.split(';').next().unwrap_or_default().trim());
    match essence {
        Some(essence) if essence.eq_ignore_ascii_case("application/json") => Ok(()),
        Some(essence) if essence.eq_ignore_ascii_case("application/merge-patch+json") => Ok(()),
        Some(_) => unsupported("the body must be application/json"),
        None => unsupported("the header content-type is missing; it must be application/json"),
    }
}
