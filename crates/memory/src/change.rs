//! Writes and deletes: every condition is looked at before anything changes.

use antumbra_service::shadows::{
    Delete, ExpectedVersion, NewDocument, ShadowId, Snapshot, StoreError, StoredDocument,
    VERSION_KEPT, Version, Write, Written,
};
use antumbra_shadow::{State, Timestamp};

use crate::Kept;

/// How many versions of deleted documents are kept before the old ones among them are looked for.
const FEW_GONE: usize = 1024;

pub(crate) fn write(kept: &mut Kept, write: &Write) -> Result<Written, StoreError> {
    let stored = kept.shadows.get(&write.shadow).cloned().unwrap_or_default();
    expect_version(expected(&write.reported), &stored.reported)?;
    expect_version(expected(&write.desired), &stored.desired)?;
    let held = if write.reported.is_some() {
        &stored.desired
    } else {
        &stored.reported
    };
    expect_version(write.other_version, held)?;

    let reported = replace(kept, write, State::Reported);
    let desired = replace(kept, write, State::Desired);
    let written = Written {
        reported: reported.as_ref().map(|held| held.version),
        desired: desired.as_ref().map(|held| held.version),
    };
    let snapshot = kept.shadows.entry(write.shadow.clone()).or_default();
    snapshot.reported = reported.or(snapshot.reported.take());
    snapshot.desired = desired.or(snapshot.desired.take());
    Ok(written)
}

/// What takes a document's place. A new one goes on from the version that a deleted one had.
fn replace(kept: &mut Kept, write: &Write, state: State) -> Option<StoredDocument> {
    let part = match state {
        State::Reported => write.reported.as_ref()?,
        State::Desired => write.desired.as_ref()?,
    };
    let gone = kept.gone.remove(&(write.shadow.clone(), state));
    let gone = gone.filter(|(_, since)| since.after(VERSION_KEPT) > write.timestamp);
    let before = match part.expected {
        Version::NONE => gone
            .map_or(Version::NONE, |(version, _)| version)
            .max(part.min_version),
        stored => stored,
    };
    Some(StoredDocument {
        document: part.document.clone(),
        version: before.next(),
        timestamp: write.timestamp,
        zone: write.zone.clone(),
        client_token: write.client_token.clone(),
        times: part.times.clone(),
    })
}

fn expected(part: &Option<NewDocument>) -> Option<Version> {
    part.as_ref().map(|part| part.expected)
}

fn expect_version(
    expected: Option<Version>,
    stored: &Option<StoredDocument>,
) -> Result<(), StoreError> {
    let Some(expected) = expected else {
        return Ok(());
    };
    let actual = stored.as_ref().map(|held| held.version);
    if actual.unwrap_or(Version::NONE) == expected {
        return Ok(());
    }
    Err(StoreError::Conflict { expected, actual })
}

pub(crate) fn delete(kept: &mut Kept, delete: &Delete, now: Timestamp) -> Result<(), StoreError> {
    let stored = kept.shadows.get(&delete.shadow);
    let version = |part: fn(&Snapshot) -> &Option<StoredDocument>| {
        stored.and_then(|snapshot| part(snapshot).as_ref().map(|held| held.version))
    };
    let reported = version(|snapshot| &snapshot.reported);
    let desired = version(|snapshot| &snapshot.desired);
    permit(delete.reported, reported)?;
    permit(delete.desired, desired)?;

    let mut remember = |state: State, version: Version| {
        let key: (ShadowId, State) = (delete.shadow.clone(), state);
        kept.gone.insert(key, (version, now));
    };
    if let Some(snapshot) = kept.shadows.get_mut(&delete.shadow) {
        if let (Some(_), Some(version)) = (delete.reported, reported) {
            snapshot.reported = None;
            remember(State::Reported, version);
        }
        if let (Some(_), Some(version)) = (delete.desired, desired) {
            snapshot.desired = None;
            remember(State::Desired, version);
        }
        if snapshot.is_absent() {
            kept.shadows.remove(&delete.shadow);
        }
    }
    forget(kept, now);
    Ok(())
}

/// Forgets versions nobody asks for any more, each time as many again have come.
fn forget(kept: &mut Kept, now: Timestamp) {
    if kept.gone.len() > kept.gone_limit.max(FEW_GONE) {
        kept.gone
            .retain(|_, (_, since)| since.after(VERSION_KEPT) > now);
        kept.gone_limit = kept.gone.len() * 2;
    }
}

fn permit(expect: Option<ExpectedVersion>, actual: Option<Version>) -> Result<(), StoreError> {
    match (expect, actual) {
        (None | Some(ExpectedVersion::Any), _) => Ok(()),
        (Some(ExpectedVersion::Version(_)), None) => Err(StoreError::NotFound),
        (Some(ExpectedVersion::Version(expected)), Some(actual)) if expected == actual => Ok(()),
        (Some(ExpectedVersion::Version(expected)), actual) => {
            Err(StoreError::Conflict { expected, actual })
        }
    }
}
