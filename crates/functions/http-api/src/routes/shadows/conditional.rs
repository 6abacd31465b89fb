//! Updates and deletions under `If-Match` and `If-None-Match`.
//!
//! A condition that names one version is passed to the store. With several versions or `*` the stored
//! version is read first and then passed to the store, so that exactly the version that was read is replaced.

use std::time::Duration;

use antumbra_dynamodb::DynamoDbShadows;
use antumbra_lambda_kit::functions::spec;
use antumbra_service::shadows::{
    Delete, DocumentSet, ExpectedVersion, Shadow, ShadowError, ShadowId, Shadows, State, Update,
    UpdateResult, Version,
};
use antumbra_shadow::Timestamp;
use lambda_http::Context;

use super::{shadow_tag, version};
use crate::conditions::{self, Conditions, IfMatch, Tags, version_mismatch};
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

pub(super) async fn update(
    shadows: &Shadows<DynamoDbShadows>,
    id: &ShadowId,
    state: State,
    update: Update,
    conditions: Conditions,
) -> Result<UpdateResult, Problem> {
    let expected = match (conditions.if_match, conditions.if_none_match) {
        (None, None) => {
            let updated = shadows.update(update).await;
            return updated.map_err(|error| match error.is_conflict() {
                true => Problem::new(Code::Unavailable, error.to_string()).with_retry(),
                false => error.into(),
            });
        }
        (None, Some(Tags::Any)) => Version::NONE,
        (Some(Tags::List(tags)), None) if tags.len() <= 1 => {
            let version = tags.first().and_then(|tag| conditions::version(tag));
            version.ok_or_else(version_mismatch)?
        }
        (Some(tags), None) => return update_listed(shadows, id, state, update, &tags).await,
        _ => {
            return Err(Problem::new(
                Code::InvalidHeader,
                "a write takes If-None-Match: * only, and not together with If-Match",
            ));
        }
    };
    match shadows.update(update.expected(expected)).await {
        Err(error) if error.is_conflict() => {
            Err(Problem::new(Code::PreconditionFailed, error.to_string()))
        }
        updated => Ok(updated?),
    }
}

/// Updates a document if one of the listed versions is stored.
async fn update_listed(
    shadows: &Shadows<DynamoDbShadows>,
    id: &ShadowId,
    state: State,
    update: Update,
    tags: &Tags,
) -> Result<UpdateResult, Problem> {
    for _ in 0..ATTEMPTS {
        let stored = shadows
            .read(id, state.into())
            .await
            .map_err(missing_is_mismatch)?;
        let stored = match state {
            State::Reported => version(&stored.reported),
            State::Desired => version(&stored.desired),
        };
        if stored == Version::NONE || !tags.contain(&stored.to_string()) {
            return Err(version_mismatch());
        }
        match shadows.update(update.clone().expected(stored)).await {
            Err(error) if error.is_conflict() => {}
            updated => return Ok(updated?),
        }
    }
    Err(too_many_conflicts())
}

pub(super) async fn delete(
    shadows: &Shadows<DynamoDbShadows>,
    id: ShadowId,
    IfMatch(tags): IfMatch,
) -> Result<(), Problem> {
    let Some(tags) = tags else {
        let unconditional = Delete {
            shadow: id,
            reported: Some(ExpectedVersion::Any),
            desired: Some(ExpectedVersion::Any),
        };
        return Ok(shadows.delete(unconditional).await?);
    };
    for _ in 0..ATTEMPTS {
        let stored = shadows.read(&id, DocumentSet::Both).await;
        let stored = stored.map_err(missing_is_mismatch)?;
        if !tags.contain(&shadow_tag(&stored)) {
            return Err(version_mismatch());
        }
        match shadows.delete(delete_of(&id, &stored)).await {
            Err(error) if error.is_conflict() || error.is_not_found() => {}
            deleted => return Ok(deleted?),
        }
    }
    Err(too_many_conflicts())
}

/// Deletes exactly the versions that were read. A document that was missing stays if it was created since.
fn delete_of(id: &ShadowId, stored: &Shadow) -> Delete {
    let expect =
        |version: Version| (version != Version::NONE).then_some(ExpectedVersion::Version(version));
    Delete {
        shadow: id.clone(),
        reported: expect(version(&stored.reported)),
        desired: expect(version(&stored.desired)),
    }
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
