//! Writes and deletes: every condition is looked at before anything changes.

use antumbra_service::shadows::{
    Delete, Expect, Held, NewDocument, PersistenceError, Snapshot, Version, Write, Written,
};

use crate::Kept;

pub(crate) fn write(kept: &mut Kept, write: &Write) -> Result<Written, PersistenceError> {
    let stored = kept.get(&write.shadow);
    let stored = stored.unwrap_or(
        const {
            &Snapshot {
                reported: None,
                desired: None,
            }
        },
    );
    expect_version(&write.reported, &stored.reported)?;
    expect_version(&write.desired, &stored.desired)?;

    let replace = |part: &Option<NewDocument>, slot: &mut Option<Held>| {
        let part = part.as_ref()?;
        let version = part.expected.next();
        *slot = Some(Held {
            document: part.document.clone(),
            version,
            timestamp: write.timestamp,
            zone: write.zone.clone(),
            client_token: write.client_token.clone(),
        });
        Some(version)
    };
    let snapshot = kept.entry(write.shadow.clone()).or_default();
    Ok(Written {
        reported: replace(&write.reported, &mut snapshot.reported),
        desired: replace(&write.desired, &mut snapshot.desired),
    })
}

fn expect_version(
    part: &Option<NewDocument>,
    stored: &Option<Held>,
) -> Result<(), PersistenceError> {
    let Some(NewDocument { expected, .. }) = part else {
        return Ok(());
    };
    let actual = stored.as_ref().map(|held| held.version);
    if actual.unwrap_or(Version::NONE) == *expected {
        return Ok(());
    }
    Err(PersistenceError::Conflict {
        expected: *expected,
        actual,
    })
}

pub(crate) fn delete(kept: &mut Kept, delete: &Delete) -> Result<(), PersistenceError> {
    let stored = kept.get(&delete.shadow);
    let version = |part: fn(&Snapshot) -> &Option<Held>| {
        stored.and_then(|snapshot| part(snapshot).as_ref().map(|held| held.version))
    };
    permit(delete.reported, version(|snapshot| &snapshot.reported))?;
    permit(delete.desired, version(|snapshot| &snapshot.desired))?;

    if let Some(snapshot) = kept.get_mut(&delete.shadow) {
        if delete.reported.is_some() {
            snapshot.reported = None;
        }
        if delete.desired.is_some() {
            snapshot.desired = None;
        }
        if *snapshot == Snapshot::default() {
            kept.remove(&delete.shadow);
        }
    }
    Ok(())
}

fn permit(expect: Option<Expect>, actual: Option<Version>) -> Result<(), PersistenceError> {
    match (expect, actual) {
        (None | Some(Expect::Any), _) => Ok(()),
        (Some(Expect::Version(_)), None) => Err(PersistenceError::NotFound),
        (Some(Expect::Version(expected)), Some(actual)) if expected == actual => Ok(()),
        (Some(Expect::Version(expected)), actual) => {
            Err(PersistenceError::Conflict { expected, actual })
        }
    }
}
