//! The query of a request.

use antumbra_service::paging::Cursor;
use antumbra_shadow::Timestamp;
use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use utoipa::IntoParams;

use crate::problem::{Code, Problem};

/// How many entries a page may hold.
const MAX_LIMIT: usize = 1000;
/// How many it holds unless asked otherwise.
const DEFAULT_LIMIT: usize = 100;

/// A query. One with names the route does not know, or with one name twice, is refused.
pub(crate) struct Queried<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Queried<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Query::try_from_uri(&parts.uri)
            .map(|Query(query)| Queried(query))
            .map_err(|fault| {
                let told = fault.body_text();
                let told = told.strip_prefix("Failed to deserialize query string: ");
                let told = told.map_or_else(|| fault.body_text(), str::to_owned);
                Problem::new(Code::InvalidQuery, told)
            })
    }
}

/// Which page of a list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Paging {
    /// How many entries the page may hold. It may hold fewer, also before the last page.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    pub(crate) limit: Option<usize>,
    /// Where the page starts: `next` of the page before.
    #[param(max_length = 16384, pattern = "^[0-9a-f]*$")]
    pub(crate) cursor: Option<String>,
}

impl Paging {
    pub(crate) fn limit(&self) -> Result<usize, Problem> {
        limit(self.limit)
    }

    pub(crate) fn cursor(&self) -> Option<Cursor> {
        cursor(self.cursor.clone())
    }
}

/// A limit that was asked for, or the default.
pub(crate) fn limit(asked: Option<usize>) -> Result<usize, Problem> {
    let limit = asked.unwrap_or(DEFAULT_LIMIT);
    if (1..=MAX_LIMIT).contains(&limit) {
        return Ok(limit);
    }
    let detail = format!("limit is 1 to {MAX_LIMIT}, not {limit}");
    Err(Problem::new(Code::InvalidQuery, detail))
}

/// A cursor that was given. That it is one is for the listing to say.
pub(crate) fn cursor(given: Option<String>) -> Option<Cursor> {
    given.map(Cursor)
}

/// A time that may be given.
pub(crate) fn time(name: &str, given: Option<String>) -> Result<Option<Timestamp>, Problem> {
    given.map(|text| instant(name, &text)).transpose()
}

/// A time that was given.
pub(crate) fn instant(name: &str, text: &str) -> Result<Timestamp, Problem> {
    Timestamp::parse(text).ok_or_else(|| {
        let detail = format!("{name} is a time such as 2026-01-31T12:00:00Z, not {text:?}");
        Problem::new(Code::InvalidQuery, detail)
    })
}
