//! Updates and deletes on conditions.
//!
//! A condition that names one version is the store's own. One that names several, or any, is looked up
//! first and then becomes the store's: what was read is what is replaced.

use antumbra_service::shadows::{
    Delete, DocumentSet, ExpectedVersion, Shadow, ShadowError, ShadowId, State, Version,
};

use super::shape::{Change, UpdateAnswer, version, whole_tag};
use crate::answer::Answer;
use crate::api::Api;
use crate::problem::{Code, Problem};
use crate::request::{Conditions, Match, matches, number, other_version};

/// How often a write on condition that something is there is tried when others are faster.
const TRIES: u32 = 5;

pub(super) async fn update(
    api: &Api,
    change: Change,
    conditions: &Conditions,
) -> Result<Answer, Problem> {
    match (&conditions.if_match, &conditions.if_none_match) {
        (None, None) => answer(&change, api.shadows().update(change.update.clone()).await),
        (None, Some(Match::Any)) => expecting(api, &change, Version::NONE).await,
        (Some(Match::Tags(tags)), None) if tags.len() <= 1 => {
            let version = tags.first().and_then(|tag| number(tag)?.try_into().ok());
            expecting(api, &change, Version(version.ok_or_else(other_version)?)).await
        }
        (Some(named), None) => expecting_any(api, &change, named).await,
        _ => Err(Problem::new(
            Code::InvalidHeader,
            "on a write, If-None-Match is * and does not go with If-Match",
        )),
    }
}

async fn expecting(api: &Api, change: &Change, version: Version) -> Result<Answer, Problem> {
    let update = change.update.clone().expected(version);
    match api.shadows().update(update).await {
        Err(error) if error.is_conflict() => {
            Err(Problem::new(Code::PreconditionFailed, error.to_string()))
        }
        updated => answer(change, updated),
    }
}

async fn expecting_any(api: &Api, change: &Change, named: &Match) -> Result<Answer, Problem> {
    let parts = match change.side {
        State::Reported => DocumentSet::Reported,
        State::Desired => DocumentSet::Desired,
    };
    for _ in 0..TRIES {
        let stored = api.shadows().read(&change.shadow, parts).await;
        let stored = stored.map_err(absent_is_other)?;
        let stored = match change.side {
            State::Reported => version(&stored.reported),
            State::Desired => version(&stored.desired),
        };
        if stored == Version::NONE || !matches(named, &stored.to_string()) {
            return Err(other_version());
        }
        let update = change.update.clone().expected(stored);
        match api.shadows().update(update).await {
            Err(error) if error.is_conflict() => {}
            updated => return answer(change, updated),
        }
    }
    Err(others_were_faster())
}

fn answer(
    change: &Change,
    updated: Result<antumbra_service::shadows::UpdateResult, ShadowError>,
) -> Result<Answer, Problem> {
    let updated = updated?;
    let answer = Answer::ok(&UpdateAnswer::new(&change.shadow, change.side, &updated))?;
    Ok(match updated.version(change.side) {
        Version::NONE => answer,
        version => answer.tagged(&version.to_string()),
    })
}

pub(super) async fn delete(
    api: &Api,
    shadow: ShadowId,
    conditions: &Conditions,
) -> Result<Answer, Problem> {
    conditions.no_if_none_match()?;
    let Some(named) = &conditions.if_match else {
        api.shadows()
            .delete(Delete {
                shadow,
                reported: Some(ExpectedVersion::Any),
                desired: Some(ExpectedVersion::Any),
            })
            .await?;
        return Ok(Answer::no_content());
    };
    for _ in 0..TRIES {
        let stored = api.shadows().read(&shadow, DocumentSet::Both).await;
        let stored = stored.map_err(absent_is_other)?;
        if !matches(named, &whole_tag(&stored)) {
            return Err(other_version());
        }
        match api.shadows().delete(exactly(&shadow, &stored)).await {
            Err(error) if error.is_conflict() || error.is_not_found() => {}
            deleted => {
                return deleted
                    .map(|()| Answer::no_content())
                    .map_err(Problem::from);
            }
        }
    }
    Err(others_were_faster())
}

/// A delete of what was read. A document that was not there is not spoken of: should it have come since,
/// it stays.
fn exactly(shadow: &ShadowId, stored: &Shadow) -> Delete {
    let expect =
        |version: Version| (version != Version::NONE).then_some(ExpectedVersion::Version(version));
    Delete {
        shadow: shadow.clone(),
        reported: expect(version(&stored.reported)),
        desired: expect(version(&stored.desired)),
    }
}

fn absent_is_other(error: ShadowError) -> Problem {
    if error.is_not_found() {
        other_version()
    } else {
        error.into()
    }
}

fn others_were_faster() -> Problem {
    Problem::new(
        Code::Conflict,
        "others wrote it at the same time, again and again",
    )
    .with_retry()
}
