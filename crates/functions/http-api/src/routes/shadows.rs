//! `/v1/shadows`: reading, merging and deleting the documents of a device.
//!
//! A shadow and its documents share one entity tag, which names both versions, such as `"r3.d2"`, with 0 for a missing
//! document. The route of a document compares the version of that document only, and also takes it alone, such as
//! `"3"`. A shadow's name stands behind `name/`, so that it can be any text.

mod conditional;
mod tag;

use antumbra_service::access::Resource;
use antumbra_service::api::{
    BulkResult, BulkResults, Delta, Shadow, ShadowPage, ShadowUpdate, UpdateResult,
};
use antumbra_service::history::purged_until;
use antumbra_service::paging::Cursor;
use antumbra_service::shadows::adapter::{ITEM_BYTES, check_document, document_bytes};
use antumbra_service::shadows::id::DEFAULT_NAME;
use antumbra_service::shadows::{
    ClientToken, DesiredMode, DocumentSet, ShadowId, State as DocumentState, Update, Zone,
};
use antumbra_service::store::StoreError;
use antumbra_shadow::{Document, Mode};
use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::NoContent;
use lambda_http::Context;
use serde::Deserialize;
use serde_json::value::RawValue;
use tag::ShadowTag;
use utoipa::{IntoParams, ToSchema};

use super::history;
use crate::access::CallerGrants;
use crate::conditions::{Conditions, IfMatch};
use crate::extract::{
    FromPath, Path, PathParameter, Query, RawBody, check_count, limit, optional_time, parse_json,
};
use crate::problem::{Code, Problem};
use crate::respond::{ETag, Json};
use crate::services::Api;

/// Reports of one request.
const REPORTS: usize = 100;
/// Reports that are read, merged and written together: their documents are in memory at the same time.
const REPORTS_AT_ONCE: usize = 25;

/// The main shadow of a device, or with `{name}` a named one.
impl FromPath for ShadowId {
    const PARAMETERS: &'static [PathParameter] = &[
        PathParameter {
            name: "id",
            description: "Device id, percent-encoded. Through API Gateway, an id with `/`, `?` or `%` is encoded twice.",
            max_length: 1024,
            pattern: None,
            example: None,
        },
        PathParameter {
            name: "name",
            description: "Shadow name, percent-encoded.",
            max_length: 256,
            pattern: None,
            example: None,
        },
    ];

    fn from_path<'a>(get: impl Fn(&str) -> Option<&'a str>) -> Result<ShadowId, String> {
        let id = get("id").unwrap_or_default();
        let shadow = match get("name") {
            Some(name) => ShadowId::named(id, name),
            None => ShadowId::new(id),
        };
        shadow.map_err(|fault| fault.to_string())
    }
}

#[derive(Default, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub(crate) struct UpdateQuery {
    /// Treatment of values that only one side has. Default: `ServerIsMaster` for reported, `Patch` for desired.
    #[param(inline)]
    mode: Option<MergeMode>,
    /// Do not acknowledge desired values when reporting.
    #[serde(default)]
    ignore_desired: bool,
    /// Token that is stored with the document, at most 64 bytes.
    #[param(min_length = 1, max_length = 64)]
    client_token: Option<String>,
    /// Time zone of the device.
    #[param(max_length = 64, example = "Europe/Stockholm")]
    tz: Option<String>,
}

/// Treatment of values that only one side has; see [`Mode`].
#[derive(Clone, Copy, Deserialize, ToSchema)]
enum MergeMode {
    ServerIsMaster,
    ClientIsMaster,
    Patch,
}

impl From<MergeMode> for Mode {
    fn from(mode: MergeMode) -> Mode {
        match mode {
            MergeMode::ServerIsMaster => Mode::ServerIsMaster,
            MergeMode::ClientIsMaster => Mode::ClientIsMaster,
            MergeMode::Patch => Mode::Patch,
        }
    }
}

impl UpdateQuery {
    /// The update that merges these documents with the options.
    fn update(
        self,
        id: &ShadowId,
        reported: Option<Document>,
        desired: Option<Document>,
    ) -> Result<Update, Problem> {
        let invalid = |fault: antumbra_service::text::InvalidText| {
            Problem::new(Code::InvalidQuery, fault.to_string())
        };
        let with_mode = |update: Update| match self.mode {
            Some(mode) => update.mode(mode.into()),
            None => update,
        };
        let mut update = match (reported, desired) {
            (Some(reported), desired) => {
                let update = with_mode(Update::report(id.clone(), reported));
                match desired {
                    Some(desired) => with_mode(update.and_desire(desired)),
                    None => update,
                }
            }
            (None, Some(desired)) => with_mode(Update::desire(id.clone(), desired)),
            (None, None) => {
                let detail = "neither reported nor desired is given";
                return Err(Problem::new(Code::Invalid, detail));
            }
        };
        if self.ignore_desired {
            update = update.desired_mode(DesiredMode::IgnoreDesiredState);
        }
        if let Some(token) = self.client_token {
            update = update.client_token(ClientToken::new(token).map_err(invalid)?);
        }
        if let Some(tz) = self.tz {
            update = update.zone(Zone::new(tz).map_err(invalid)?);
        }
        Ok(update)
    }
}

/// Documents to merge into a shadow, at least one.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShadowPatch {
    /// State that the device reports.
    #[schema(value_type = Option<Object>)]
    reported: Option<Box<RawValue>>,
    /// State that the device is asked for; `null` removes a value.
    #[schema(value_type = Option<Object>)]
    desired: Option<Box<RawValue>>,
}

/// Updates of many shadows.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reports {
    /// The updates, at most 100. Those of one shadow are carried out in the given order.
    reports: Vec<Report>,
}

/// An update of one shadow: `reported`, `desired` or both, in one write.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Report {
    /// Device id.
    id: String,
    /// Shadow name; `main` by default.
    name: Option<String>,
    /// State that the device reports.
    #[schema(value_type = Option<Object>)]
    reported: Option<Box<RawValue>>,
    /// State that the device is asked for; `null` removes a value.
    #[schema(value_type = Option<Object>)]
    desired: Option<Box<RawValue>>,
    /// Treatment of values that only one side has. Default: `ServerIsMaster` for reported, `Patch` for desired.
    mode: Option<MergeMode>,
    /// Do not acknowledge desired values when reporting.
    #[serde(default)]
    ignore_desired: bool,
    /// Token that is stored with the document, at most 64 bytes.
    client_token: Option<String>,
    /// Time zone of the device.
    tz: Option<String>,
}

/// The ids in the body of [`report_many`].
pub(crate) fn reported_ids(body: &[u8]) -> Result<Vec<Option<String>>, Problem> {
    let Reports { reports } = parse_json(body)?;
    Ok(reports.into_iter().map(|report| Some(report.id)).collect())
}

impl Report {
    fn update(self) -> Result<(ShadowId, Update), Problem> {
        let shadow = match &self.name {
            Some(name) => ShadowId::named(&self.id, name),
            None => ShadowId::new(&self.id),
        };
        let shadow = shadow.map_err(|fault| Problem::new(Code::Invalid, fault.to_string()))?;
        let options = UpdateQuery {
            mode: self.mode,
            ignore_desired: self.ignore_desired,
            client_token: self.client_token,
            tz: self.tz,
        };
        let (reported, desired) = (document(self.reported)?, document(self.desired)?);
        let update = options.update(&shadow, reported, desired);
        let update = update.map_err(|problem| Problem::new(Code::Invalid, problem.detail()))?;
        Ok((shadow, update))
    }
}

/// Parses a member of a body with every digit of its numbers.
fn document(raw: Option<Box<RawValue>>) -> Result<Option<Document>, Problem> {
    let Some(raw) = raw else {
        return Ok(None);
    };
    let document = Document::parse(raw.get())?;
    check(&document)?;
    Ok(Some(document))
}

/// Selection of shadows.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ShadowsQuery {
    /// Start of the device id; all shadows by default.
    #[serde(default)]
    #[param(max_length = 1024, example = "lamp-")]
    prefix: String,
    /// Maximum number of entries. A page can be shorter, also before the last one.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<usize>,
    /// `nextCursor` of the previous page. Requires the same `prefix`.
    #[param(max_length = 16384, pattern = "^[A-Za-z0-9_-]*$")]
    cursor: Option<String>,
}

pub(crate) async fn list(
    State(api): Api,
    grants: CallerGrants,
    Query(query): Query<ShadowsQuery>,
) -> Result<Json<ShadowPage>, Problem> {
    let (limit, cursor) = (limit(query.limit)?, query.cursor.map(Cursor));
    let within = grants.readable(Resource::Shadows);
    let page = api
        .shadows
        .list_within(&within, &query.prefix, limit, cursor.as_ref())
        .await?;
    Ok(Json(page.into()))
}

/// Time of the wanted state.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ShadowQuery {
    /// The state at this time instead of the current one, from the history.
    #[param(example = "2026-01-31T12:04:00Z")]
    at: Option<String>,
}

pub(crate) async fn get(
    State(api): Api,
    Path(id): Path<ShadowId>,
    Query(query): Query<ShadowQuery>,
) -> Result<(ETag, Json<Shadow>), Problem> {
    let at = optional_time("at", query.at)?;
    let mut shadow = match at {
        Some(at) => history::state_at(&api, &id, at).await?,
        None => api.shadows.read(&id, DocumentSet::Both).await?,
    };
    shadow.delta.get_or_insert_default();
    let tag = ETag::new(ShadowTag::of(&shadow.reported, &shadow.desired));
    Ok((tag, Json(Shadow::new(&id, shadow))))
}

pub(crate) async fn delta(
    State(api): Api,
    Path(id): Path<ShadowId>,
) -> Result<(ETag, Json<Delta>), Problem> {
    let shadow = api.shadows.read(&id, DocumentSet::Both).await?;
    let tag = ETag::new(ShadowTag::of(&shadow.reported, &shadow.desired));
    Ok((tag, Json(Delta::new(&id, shadow))))
}

/// Extent of a delete.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct DeleteQuery {
    /// Also delete the past of the shadow, in the background. Requires the grant `shadows:admin`.
    #[serde(default)]
    purge: bool,
}

pub(crate) async fn delete(
    State(api): Api,
    Path(id): Path<ShadowId>,
    Query(query): Query<DeleteQuery>,
    condition: IfMatch,
) -> Result<NoContent, Problem> {
    if query.purge {
        history::reader(&api)?;
    }
    let (shadows, both) = (&api.shadows, DocumentSet::Both);
    let deleted = conditional::delete(shadows, id.clone(), both, condition).await?;
    if query.purge {
        let now = api.clock.now();
        let until = purged_until(deleted, now);
        shadows.store().queue_purge(&id, until, now).await?;
    }
    Ok(NoContent)
}

/// Deletes the reported or the desired document.
pub(crate) async fn delete_document<const DESIRED: bool>(
    State(api): Api,
    Path(id): Path<ShadowId>,
    condition: IfMatch,
) -> Result<NoContent, Problem> {
    let documents = documents::<DESIRED>();
    conditional::delete(&api.shadows, id, documents, condition).await?;
    Ok(NoContent)
}

fn documents<const DESIRED: bool>() -> DocumentSet {
    match DESIRED {
        false => DocumentSet::Reported,
        true => DocumentSet::Desired,
    }
}

/// The result of a merge.
type Merged<T> = (ETag, Json<T>);

pub(crate) async fn merge<const DESIRED: bool>(
    State(api): Api,
    Path(id): Path<ShadowId>,
    Query(query): Query<UpdateQuery>,
    conditions: Conditions,
    context: Option<Extension<Context>>,
    RawBody(body): RawBody,
) -> Result<Merged<UpdateResult>, Problem> {
    let document = Document::from_slice(&body)?;
    check(&document)?;
    let (state, update) = match DESIRED {
        false => (
            DocumentState::Reported,
            query.update(&id, Some(document), None)?,
        ),
        true => (
            DocumentState::Desired,
            query.update(&id, None, Some(document))?,
        ),
    };
    let deadline = conditional::deadline(context.as_deref(), api.clock.now());
    let update = update.deadline(deadline);
    let documents = documents::<DESIRED>();
    let result = conditional::update(&api.shadows, &id, documents, update, conditions).await?;
    let tag = ShadowTag::of(&result.reported, &result.desired);
    Ok((ETag::new(tag), Json(UpdateResult::new(&id, state, result))))
}

/// Merges both documents in one write.
pub(crate) async fn merge_both(
    State(api): Api,
    Path(id): Path<ShadowId>,
    Query(query): Query<UpdateQuery>,
    conditions: Conditions,
    context: Option<Extension<Context>>,
    Json(patch): Json<ShadowPatch>,
) -> Result<Merged<ShadowUpdate>, Problem> {
    let update = query.update(&id, document(patch.reported)?, document(patch.desired)?)?;
    let deadline = conditional::deadline(context.as_deref(), api.clock.now());
    let update = update.deadline(deadline);
    let both = DocumentSet::Both;
    let result = conditional::update(&api.shadows, &id, both, update, conditions).await?;
    let tag = ShadowTag::of(&result.reported, &result.desired);
    Ok((ETag::new(tag), Json(ShadowUpdate::new(&id, &result, 1))))
}

/// Updates many shadows. One that fails does not affect the others.
pub(crate) async fn report_many(
    State(api): Api,
    context: Option<Extension<Context>>,
    Json(Reports { reports }): Json<Reports>,
) -> Result<Json<BulkResults>, Problem> {
    let count = reports.len();
    check_count("reports", count, REPORTS)?;
    let deadline = conditional::deadline(context.as_deref(), api.clock.now());
    let mut results = Vec::with_capacity(count);
    let mut reports = reports.into_iter().peekable();
    while reports.peek().is_some() {
        let (mut updates, mut checked) = (Vec::new(), Vec::new());
        for report in reports.by_ref().take(REPORTS_AT_ONCE) {
            let (id, name) = (report.id.clone(), report.name.clone());
            let shadow = report.update().map(|(shadow, update)| {
                updates.push(update.deadline(deadline).read_both());
                shadow
            });
            checked.push((id, name, shadow));
        }
        let mut updated = api.shadows.update_many(&updates).await.into_iter();
        results.extend(checked.into_iter().map(|(id, name, shadow)| {
            let result = shadow.and_then(|shadow| match updated.next() {
                Some(updated) => Ok(ShadowUpdate::new(&shadow, &updated?, count)),
                None => Err(Problem::internal("an update has no result")),
            });
            let (status, result, error) = match result {
                Ok(result) => (StatusCode::OK, Some(result), None),
                Err(problem) => (problem.code().status(), None, Some(problem.in_bulk())),
            };
            BulkResult {
                id,
                name: name.unwrap_or_else(|| DEFAULT_NAME.to_owned()),
                status: status.as_u16(),
                result,
                error,
            }
        }));
    }
    Ok(Json(BulkResults { results }))
}

/// Rejects a document that can never be stored, before anything is read or merged.
fn check(document: &Document) -> Result<(), StoreError> {
    check_document(document)?;
    match document_bytes(document) {
        0..=ITEM_BYTES => Ok(()),
        bytes => Err(StoreError::TooLarge {
            bytes,
            limit: ITEM_BYTES,
        }),
    }
}
