//! The past of shadows: states at a time, recorded changes, differences of two times.

use antumbra_dynamodb::HistoryReader;
use antumbra_service::api::{HistoryPage, ShadowDifference};
use antumbra_service::history::{ChangeQuery, StateAt};
use antumbra_service::paging::Cursor;
use antumbra_service::shadows::{Shadow, ShadowId};
use antumbra_shadow::Timestamp;
use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::extract::{Path, Query, limit, optional_time, time};
use crate::problem::{Code, Problem};
use crate::respond::Json;
use crate::services::{Api, Services};

pub(super) fn reader(api: &Services) -> Result<&HistoryReader, Problem> {
    let off = "this deployment keeps no history; HistoryDays is 0";
    let history = api.history.as_ref();
    history.ok_or_else(|| Problem::new(Code::HistoryOff, off))
}

/// The problem of a state that is not known.
fn unknown(id: &ShadowId, state: &StateAt, at: &str) -> Problem {
    match state {
        StateAt::BeforeRetention { since } => Problem::new(
            Code::BeforeRetention,
            format!("the history is kept since {since}; {at} is before that"),
        ),
        StateAt::DidNotExist => Problem::new(
            Code::DidNotExist,
            format!("the shadow {id} did not exist at {at}"),
        ),
        StateAt::Existed(_) | StateAt::NotRecorded => Problem::new(
            Code::NotRecorded,
            format!(
                "a change of the shadow {id} around {at} is not recorded; a change of a moment ago is recorded soon"
            ),
        ),
    }
}

pub(super) async fn state_at(
    api: &Services,
    id: &ShadowId,
    at: Timestamp,
) -> Result<Shadow, Problem> {
    match reader(api)?.state_at(id, at, api.clock.now()).await? {
        StateAt::Existed(shadow) => Ok(*shadow),
        state => Err(unknown(id, &state, &at.to_string())),
    }
}

/// Selection of recorded changes.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct HistoryQuery {
    /// Changes at this time or later.
    #[param(example = "2026-01-31T12:00:00Z")]
    from: Option<String>,
    /// Changes at this time or earlier.
    #[param(example = "2026-01-31T13:00:00Z")]
    to: Option<String>,
    /// JSON Pointer: changes of the values there or below.
    #[param(example = "/led", max_length = 16384, pattern = "^(/.*)?$")]
    path: Option<String>,
    /// Maximum number of entries. A page can be shorter, also before the last one.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<usize>,
    /// `nextCursor` of the previous page. Requires the same selection.
    #[param(max_length = 16384, pattern = "^[A-Za-z0-9_-]*$")]
    cursor: Option<String>,
}

pub(crate) async fn changes(
    State(api): Api,
    Path(id): Path<ShadowId>,
    Query(query): Query<HistoryQuery>,
) -> Result<Json<HistoryPage>, Problem> {
    let (limit, cursor) = (limit(query.limit)?, query.cursor.map(Cursor));
    let is_pointer = |path: &String| path.is_empty() || path.starts_with('/');
    if let Some(path) = query.path.as_ref().filter(|path| !is_pointer(path)) {
        let detail = format!("path must be a JSON Pointer such as /led, not {path:?}");
        return Err(Problem::new(Code::InvalidQuery, detail));
    }
    let query = ChangeQuery {
        shadow: id,
        from: optional_time("from", query.from)?,
        to: optional_time("to", query.to)?,
        path: query.path,
    };
    let page = reader(&api)?.changes(&query, limit, cursor.as_ref(), api.clock.now());
    Ok(Json(page.await?.into()))
}

/// Two times.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct DifferenceQuery {
    /// The earlier time.
    #[param(example = "2026-01-31T12:00:00Z")]
    from: String,
    /// The later time; now by default.
    #[param(example = "2026-01-31T13:00:00Z")]
    to: Option<String>,
}

pub(crate) async fn difference(
    State(api): Api,
    Path(id): Path<ShadowId>,
    Query(query): Query<DifferenceQuery>,
) -> Result<Json<ShadowDifference>, Problem> {
    let now = api.clock.now();
    let from = time("from", &query.from)?;
    let to = optional_time("to", query.to)?.unwrap_or(now);
    match reader(&api)?.difference(&id, [from, to], now).await? {
        Ok(documents) => Ok(Json(ShadowDifference::new(&id, from, to, documents))),
        Err(state) => Err(unknown(&id, &state, &format!("{from} or {to}"))),
    }
}
