//! Updates and deletions under `If-Match` and `If-None-Match`.
//!
//! A condition that names one version is passed to the store. With several versions or `*` the stored
//! version is read first and then passed to the store, so that exactly the version that was read is replaced.

use std::time::Duration;

use antumbra_dynamodb::DynamoDbShadows;
use antumbra_lambda_kit::functions::spec;
use antumbra_service::shadows::{
    Delete, DocumentSet, ExpectedVersion, ShadowError, ShadowId, Shadows, State, Update,
    UpdateResult, Version,
};
use antumbra_shadow::Timestamp;
use lambda_http::Context;

use super::tag::ShadowTag;
use crate::conditions::{Conditions, IfMatch, Tags, version_mismatch};
use crate::problem::{Code, Problem};

/// Attempts of a read and a conditional write while other writers are faster.
const ATTEMPTS: u32 = 5;
/// Time kept back for the response.
const RESPONSE: Duration = Duration::from_millis(1500);

/// Returns the time until which an update is retried: shortly before Lambda's deadline, and as long without Lambda.
pub(super) fn deadline(context: Option<&Context>, now: Timestamp) -> Timestamp {
    let end = match context {
        Some(context) => i128::from(context.deadline) * 1_000_000,
        None => now.after(spec(crate::NAME).timeout).nanoseconds(),
    };
    Timestamp::from_nanoseconds(end - RESPONSE.as_nanos() as i128)
}

/// Updates these documents of a shadow under the conditions of the request.
pub(super) async fn update(
    shadows: &Shadows<DynamoDbShadows>,
    id: &ShadowId,
    documents: DocumentSet,
    update: Update,
    conditions: Conditions,
) -> Result<UpdateResult, Problem> {
    // The entity tag of the response names both versions.
    let update = update.read_both();
    let update = match (conditions.if_match, conditions.if_none_match) {
        (None, None) => {
            let updated = shadows.update(update).await;
            return updated.map_err(|error| match error.is_conflict() {
                true => Problem::new(Code::Unavailable, error.to_string()).with_retry(),
                false => error.into(),
            });
        }
        (None, Some(Tags::Any)) => ShadowTag::default().expected_by(update, documents),
        (Some(Tags::List(tags)), None) if tags.len() <= 1 => {
            let tag = tags
                .first()
                .and_then(|tag| ShadowTag::parse(tag, documents));
            tag.ok_or_else(version_mismatch)?
                .expected_by(update, documents)
        }
        (Some(tags), None) => return update_listed(shadows, id, documents, update, &tags).await,
        _ => {
            return Err(Problem::new(
                Code::InvalidHeader,
                "a write takes If-None-Match: * only, and not together with If-Match",
            ));
        }
    };
    match shadows.update(update).await {
        Err(error) if error.is_conflict() => {
            Err(Problem::new(Code::PreconditionFailed, error.to_string()))
        }
        updated => Ok(updated?),
    }
}

/// Updates documents if one of the listed versions is stored.
async fn update_listed(
    shadows: &Shadows<DynamoDbShadows>,
    id: &ShadowId,
    documents: DocumentSet,
    update: Update,
    tags: &Tags,
) -> Result<UpdateResult, Problem> {
    for _ in 0..ATTEMPTS {
        let stored = listed(shadows, id, documents, tags).await?;
        let update = stored.expected_by(update.clone(), documents);
        match shadows.update(update).await {
            Err(error) if error.is_conflict() => {}
            updated => return Ok(updated?),
        }
    }
    Err(too_many_conflicts())
}

/// Deletes these documents of a shadow, exactly the listed versions. A document that was missing stays if it was
/// created since. Returns the time of the delete, as [`Shadows::delete_timed`] does.
pub(super) async fn delete(
    shadows: &Shadows<DynamoDbShadows>,
    id: ShadowId,
    documents: DocumentSet,
    IfMatch(tags): IfMatch,
) -> Result<Option<Timestamp>, Problem> {
    let delete = |expect: &dyn Fn(State) -> Option<ExpectedVersion>| Delete {
        shadow: id.clone(),
        reported: expect(State::Reported).filter(|_| documents.has(State::Reported)),
        desired: expect(State::Desired).filter(|_| documents.has(State::Desired)),
        other_version: None,
        time: None,
    };
    let Some(tags) = tags else {
        return Ok(shadows
            .delete_timed(delete(&|_| Some(ExpectedVersion::Any)))
            .await?);
    };
    for _ in 0..ATTEMPTS {
        let stored = listed(shadows, &id, documents, &tags).await?;
        let stored = delete(&|state| {
            let version = Some(stored.version(state)).filter(|version| *version != Version::NONE);
            version.map(ExpectedVersion::Version)
        });
        match shadows.delete_timed(stored).await {
            Err(error) if error.is_conflict() || error.is_not_found() => {}
            deleted => return Ok(deleted?),
        }
    }
    Err(too_many_conflicts())
}

/// Reads the tag of a shadow, which must be one of the listed ones.
async fn listed(
    shadows: &Shadows<DynamoDbShadows>,
    id: &ShadowId,
    documents: DocumentSet,
    tags: &Tags,
) -> Result<ShadowTag, Problem> {
    let stored = shadows.read(id, DocumentSet::Both).await;
    let stored = stored.map_err(missing_is_mismatch)?;
    let stored = ShadowTag::of(&stored.reported, &stored.desired);
    let is_listed = stored.exists(documents)
        && match tags {
            Tags::Any => true,
            Tags::List(tags) => tags.iter().any(|tag| {
                let tag = ShadowTag::parse(tag, documents);
                tag.is_some_and(|tag| tag.matches(stored, documents))
            }),
        };
    is_listed.then_some(stored).ok_or_else(version_mismatch)
}

fn missing_is_mismatch(error: ShadowError) -> Problem {
    if error.is_not_found() {
        version_mismatch()
    } else {
        error.into()
    }
}

fn too_many_conflicts() -> Problem {
    let detail = format!("other writers were faster {ATTEMPTS} times");
    Problem::new(Code::Conflict, detail).with_retry()
}
