//! `/v1/shadows`: the documents of a device, read and merged.
//!
//! A document's entity tag is its version, `"3"`; that of a shadow as a whole names both, `"r3.d2"`, with
//! 0 for a document that is not there. Three words stand where a name may stand, so that a shadow called
//! `reported`, `desired` or `delta` cannot be read or deleted whole here; its documents can be reached.

mod change;
mod shape;

use antumbra_service::shadows::{DocumentSet, ShadowError, ShadowId, State as Side, StoreError};
use antumbra_shadow::DocumentError;
use axum::extract::State;

use crate::answer::Answer;
use crate::api::Api;
use crate::openapi::{Changed, IfMatch, IfNoneMatch, Missing};
use crate::problem::{Code, Problem};
use crate::request::{Conditions, PathParts, Queried, RawBody};
use change::{delete, update};
use shape::{
    DeltaAnswer, DocumentBody, NamedShadow, ShadowAnswer, TheShadow, UpdateAnswer, UpdateQuery,
    whole_tag,
};

/// Reads a device's main shadow.
#[utoipa::path(
    get, path = "/v1/shadows/{id}", tag = "shadows", params(TheShadow, IfNoneMatch),
    responses(
        (status = 200, description = "Both documents and the delta.", body = ShadowAnswer<'static>, headers(("ETag" = String))),
        (status = 304, description = "The caller has it already."),
        Missing,
    ),
)]
pub(crate) async fn get_main(
    State(api): State<Api>,
    PathParts(shadow): PathParts<TheShadow>,
    conditions: Conditions,
) -> Result<Answer, Problem> {
    get(&api, shadow.id()?, &conditions).await
}

/// Reads one of a device's shadows.
#[utoipa::path(
    get, path = "/v1/shadows/{id}/{name}", tag = "shadows", params(NamedShadow, IfNoneMatch),
    responses(
        (status = 200, description = "Both documents and the delta.", body = ShadowAnswer<'static>, headers(("ETag" = String))),
        (status = 304, description = "The caller has it already."),
        Missing,
    ),
)]
pub(crate) async fn get_named(
    State(api): State<Api>,
    PathParts(shadow): PathParts<NamedShadow>,
    conditions: Conditions,
) -> Result<Answer, Problem> {
    get(&api, shadow.id()?, &conditions).await
}

/// Deletes a device's main shadow.
#[utoipa::path(
    delete, path = "/v1/shadows/{id}", tag = "shadows", params(TheShadow, IfMatch),
    responses((status = 204, description = "It is gone, or was not there."), Changed),
)]
pub(crate) async fn delete_main(
    State(api): State<Api>,
    PathParts(shadow): PathParts<TheShadow>,
    conditions: Conditions,
) -> Result<Answer, Problem> {
    delete(&api, shadow.id()?, &conditions).await
}

/// Deletes one of a device's shadows.
#[utoipa::path(
    delete, path = "/v1/shadows/{id}/{name}", tag = "shadows", params(NamedShadow, IfMatch),
    responses((status = 204, description = "It is gone, or was not there."), Changed),
)]
pub(crate) async fn delete_named(
    State(api): State<Api>,
    PathParts(shadow): PathParts<NamedShadow>,
    conditions: Conditions,
) -> Result<Answer, Problem> {
    delete(&api, shadow.id()?, &conditions).await
}

/// Merges what a device says into its main shadow's reported document.
#[utoipa::path(
    patch, path = "/v1/shadows/{id}/reported", tag = "shadows",
    params(TheShadow, UpdateQuery, IfMatch, IfNoneMatch), request_body = DocumentBody,
    responses(
        (status = 200, description = "What became of each value.", body = UpdateAnswer<'static>, headers(("ETag" = String))),
        Changed,
    ),
)]
pub(crate) async fn report_main(
    State(api): State<Api>,
    PathParts(shadow): PathParts<TheShadow>,
    Queried(query): Queried<UpdateQuery>,
    conditions: Conditions,
    body: RawBody,
) -> Result<Answer, Problem> {
    update(
        &api,
        query.update(shadow.id()?, Side::Reported, &body)?,
        &conditions,
    )
    .await
}

/// Merges what a device says into the reported document of one of its shadows.
#[utoipa::path(
    patch, path = "/v1/shadows/{id}/{name}/reported", tag = "shadows",
    params(NamedShadow, UpdateQuery, IfMatch, IfNoneMatch), request_body = DocumentBody,
    responses(
        (status = 200, description = "What became of each value.", body = UpdateAnswer<'static>, headers(("ETag" = String))),
        Changed,
    ),
)]
pub(crate) async fn report_named(
    State(api): State<Api>,
    PathParts(shadow): PathParts<NamedShadow>,
    Queried(query): Queried<UpdateQuery>,
    conditions: Conditions,
    body: RawBody,
) -> Result<Answer, Problem> {
    update(
        &api,
        query.update(shadow.id()?, Side::Reported, &body)?,
        &conditions,
    )
    .await
}

/// Merges what is wanted of a device into its main shadow's desired document.
#[utoipa::path(
    patch, path = "/v1/shadows/{id}/desired", tag = "shadows",
    params(TheShadow, UpdateQuery, IfMatch, IfNoneMatch), request_body = DocumentBody,
    responses(
        (status = 200, description = "What became of each value.", body = UpdateAnswer<'static>, headers(("ETag" = String))),
        Changed,
    ),
)]
pub(crate) async fn desire_main(
    State(api): State<Api>,
    PathParts(shadow): PathParts<TheShadow>,
    Queried(query): Queried<UpdateQuery>,
    conditions: Conditions,
    body: RawBody,
) -> Result<Answer, Problem> {
    update(
        &api,
        query.update(shadow.id()?, Side::Desired, &body)?,
        &conditions,
    )
    .await
}

/// Merges what is wanted of a device into the desired document of one of its shadows.
#[utoipa::path(
    patch, path = "/v1/shadows/{id}/{name}/desired", tag = "shadows",
    params(NamedShadow, UpdateQuery, IfMatch, IfNoneMatch), request_body = DocumentBody,
    responses(
        (status = 200, description = "What became of each value.", body = UpdateAnswer<'static>, headers(("ETag" = String))),
        Changed,
    ),
)]
pub(crate) async fn desire_named(
    State(api): State<Api>,
    PathParts(shadow): PathParts<NamedShadow>,
    Queried(query): Queried<UpdateQuery>,
    conditions: Conditions,
    body: RawBody,
) -> Result<Answer, Problem> {
    update(
        &api,
        query.update(shadow.id()?, Side::Desired, &body)?,
        &conditions,
    )
    .await
}

/// What is wanted of a device and not yet so, of its main shadow.
#[utoipa::path(
    get, path = "/v1/shadows/{id}/delta", tag = "shadows", params(TheShadow, IfNoneMatch),
    responses(
        (status = 200, description = "The delta; `{}` when all is as desired.", body = DeltaAnswer<'static>, headers(("ETag" = String))),
        (status = 304, description = "The caller has it already."),
        Missing,
    ),
)]
pub(crate) async fn delta_main(
    State(api): State<Api>,
    PathParts(shadow): PathParts<TheShadow>,
    conditions: Conditions,
) -> Result<Answer, Problem> {
    delta(&api, shadow.id()?, &conditions).await
}

/// What is wanted of a device and not yet so, of one of its shadows.
#[utoipa::path(
    get, path = "/v1/shadows/{id}/{name}/delta", tag = "shadows", params(NamedShadow, IfNoneMatch),
    responses(
        (status = 200, description = "The delta; `{}` when all is as desired.", body = DeltaAnswer<'static>, headers(("ETag" = String))),
        (status = 304, description = "The caller has it already."),
        Missing,
    ),
)]
pub(crate) async fn delta_named(
    State(api): State<Api>,
    PathParts(shadow): PathParts<NamedShadow>,
    conditions: Conditions,
) -> Result<Answer, Problem> {
    delta(&api, shadow.id()?, &conditions).await
}

async fn get(api: &Api, id: ShadowId, conditions: &Conditions) -> Result<Answer, Problem> {
    let shadow = api.shadows().read(&id, DocumentSet::Both).await?;
    let tag = whole_tag(&shadow);
    if conditions.has(&tag) {
        return Ok(Answer::not_modified(&tag));
    }
    Ok(Answer::ok(&ShadowAnswer::new(&id, &shadow))?.tagged(&tag))
}

async fn delta(api: &Api, id: ShadowId, conditions: &Conditions) -> Result<Answer, Problem> {
    let shadow = api.shadows().read(&id, DocumentSet::Both).await?;
    let tag = whole_tag(&shadow);
    if conditions.has(&tag) {
        return Ok(Answer::not_modified(&tag));
    }
    Ok(Answer::ok(&DeltaAnswer::new(&id, &shadow))?.tagged(&tag))
}

impl From<ShadowError> for Problem {
    fn from(error: ShadowError) -> Problem {
        match error {
            ShadowError::Document(fault) => fault.into(),
            ShadowError::Id(fault) => Problem::new(Code::InvalidPath, fault.to_string()),
            ShadowError::Store { error, .. } => match error {
                StoreError::NotFound => Problem::new(Code::NotFound, "no such shadow"),
                StoreError::Conflict { .. } => {
                    Problem::new(Code::Conflict, error.to_string()).with_retry()
                }
                StoreError::Invalid(reason) => Problem::new(Code::Invalid, reason),
                StoreError::TooLarge { .. } => Problem::new(Code::TooLarge, error.to_string()),
                StoreError::Throttled | StoreError::Unavailable(_) => Problem::unavailable(error),
            },
        }
    }
}

impl From<DocumentError> for Problem {
    fn from(fault: DocumentError) -> Problem {
        let code = match fault {
            DocumentError::Syntax(_) | DocumentError::NotUtf8 { .. } => Code::InvalidJson,
            DocumentError::TooLong { .. } => Code::TooLarge,
            _ => Code::Invalid,
        };
        Problem::new(code, fault.to_string())
    }
}
