//! `/v1/shadows`: reading, merging and deleting the documents of a device.
//!
//! A document's entity tag is its version, such as `"3"`. The tag of a shadow names both versions, such as
//! `"r3.d2"`, with 0 for a missing document. `reported`, `desired` and `delta` are path segments where a
//! shadow name can stand, so a shadow with one of these names cannot be read or deleted as a whole here.

mod conditional;

use antumbra_service::api::{Delta, Shadow, UpdateResult};
use antumbra_service::shadows::adapter::{ITEM_BYTES, check_document, document_bytes};
use antumbra_service::shadows::{
    self, ClientToken, DesiredMode, DocumentSet, ShadowId, State as DocumentState, StoredDocument,
    Update, Version, Zone,
};
use antumbra_service::store::StoreError;
use antumbra_shadow::{Document, Mode};
use axum::Extension;
use axum::extract::State;
use axum::response::NoContent;
use lambda_http::Context;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use crate::conditions::{Conditions, IfMatch};
use crate::extract::{FromPath, Path, PathParameter, Query, RawBody};
use crate::problem::{Code, Problem};
use crate::respond::{ETag, Json};
use crate::services::Api;

/// The main shadow of a device, or with `{name}` a named one.
impl FromPath for ShadowId {
    const PARAMETERS: &'static [PathParameter] = &[
        PathParameter {
            name: "id",
            description: "Device id, percent-encoded. Through API Gateway, an id with `/`, `?` or `%` is encoded twice.",
            max_length: 2045,
            pattern: None,
            example: None,
        },
        PathParameter {
            name: "name",
            description: "Shadow name, percent-encoded.",
            max_length: 1020,
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

#[derive(Deserialize, IntoParams)]
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
    fn apply(self, mut update: Update) -> Result<Update, Problem> {
        let invalid = |fault: antumbra_service::text::InvalidText| {
            Problem::new(Code::InvalidQuery, fault.to_string())
        };
        if let Some(mode) = self.mode {
            update = update.mode(mode.into());
        }
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

pub(crate) async fn get(
    State(api): Api,
    Path(id): Path<ShadowId>,
) -> Result<(ETag, Json<Shadow>), Problem> {
    let mut shadow = api.shadows.read(&id, DocumentSet::Both).await?;
    shadow.delta.get_or_insert_default();
    Ok((
        ETag::new(shadow_tag(&shadow)),
        Json(Shadow::new(&id, shadow)),
    ))
}

pub(crate) async fn delta(
    State(api): Api,
    Path(id): Path<ShadowId>,
) -> Result<(ETag, Json<Delta>), Problem> {
    let shadow = api.shadows.read(&id, DocumentSet::Both).await?;
    Ok((
        ETag::new(shadow_tag(&shadow)),
        Json(Delta::new(&id, shadow)),
    ))
}

pub(crate) async fn delete(
    State(api): Api,
    Path(id): Path<ShadowId>,
    condition: IfMatch,
) -> Result<NoContent, Problem> {
    conditional::delete(&api.shadows, id, condition).await?;
    Ok(NoContent)
}

/// The result of a merge. An update of a document that does not exist can leave none, hence no tag.
type Merged = (Option<ETag>, Json<UpdateResult>);

pub(crate) async fn merge<const DESIRED: bool>(
    State(api): Api,
    Path(id): Path<ShadowId>,
    Query(query): Query<UpdateQuery>,
    conditions: Conditions,
    context: Option<Extension<Context>>,
    RawBody(body): RawBody,
) -> Result<Merged, Problem> {
    let document = Document::from_slice(&body)?;
    check(&document)?;
    let (state, update) = match DESIRED {
        false => (
            DocumentState::Reported,
            Update::report(id.clone(), document),
        ),
        true => (DocumentState::Desired, Update::desire(id.clone(), document)),
    };
    let deadline = conditional::deadline(context.as_deref(), api.clock.now());
    let update = query.apply(update)?.deadline(deadline);
    let result = conditional::update(&api.shadows, &id, state, update, conditions).await?;
    let version = result.version(state);
    let tag = (version != Version::NONE).then(|| ETag::new(version));
    Ok((tag, Json(UpdateResult::new(&id, state, result))))
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

fn version(document: &Option<StoredDocument>) -> Version {
    document
        .as_ref()
        .map_or(Version::NONE, |document| document.version)
}

fn shadow_tag(shadow: &shadows::Shadow) -> String {
    let (reported, desired) = (version(&shadow.reported), version(&shadow.desired));
    format!("r{reported}.d{desired}")
}
