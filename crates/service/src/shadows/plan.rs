//! The decision: an update and what is stored make a write, or none.
//!
//! Pure; the executor in [`super::engine`] has no choices left.

use antumbra_shadow::{
    Acknowledgement, Changes, Document, Model, State, Timestamp, acknowledge, merge,
};

use super::persistence::{
    Held, Layout, NewDocument, Parts, PersistenceError, Snapshot, Version, Write,
};
use super::update::{DesiredMode, Sent, Update};

/// What an update comes to, given what is stored.
#[derive(Debug)]
pub(super) struct Plan {
    /// What to write; `None` when everything is as it should be already.
    pub(super) write: Option<Write>,
    pub(super) reported_changes: Option<Changes>,
    pub(super) desired_changes: Option<Changes>,
    pub(super) acknowledged: Vec<Acknowledgement>,
}

/// Which documents an update has to see.
pub(super) fn parts(update: &Update, layout: Layout) -> Parts {
    let acknowledges = update.desired_mode == DesiredMode::UseDesiredState;
    match (&update.reported, &update.desired) {
        _ if layout == Layout::Combined => Parts::Both,
        (Some(_), None) if !acknowledges => Parts::Reported,
        (None, _) => Parts::Desired,
        _ => Parts::Both,
    }
}

pub(super) fn plan(
    update: &Update,
    stored: &Snapshot,
    layout: Layout,
    model: &Model,
    now: Timestamp,
) -> Result<Plan, PersistenceError> {
    let reported = part(
        update.reported.as_ref(),
        stored.reported.as_ref(),
        model,
        now,
    )?;
    let mut desired = part(update.desired.as_ref(), stored.desired.as_ref(), model, now)?;
    let mut acknowledged = Vec::new();
    if update.reported.is_some() && update.desired_mode == DesiredMode::UseDesiredState {
        let done = acknowledge(&reported.document, &desired.document, model);
        if !done.acknowledged.is_empty() {
            desired.document = done.desired;
            desired.dirty = true;
        }
        acknowledged = done.acknowledged;
    }
    let dirty = reported.dirty || desired.dirty;
    let both = layout == Layout::Combined;
    let write = dirty.then(|| Write {
        shadow: update.shadow.clone(),
        reported: (both || reported.dirty).then(|| reported.new_document()),
        desired: (both || desired.dirty).then(|| desired.new_document()),
        timestamp: now,
        zone: update.zone.clone(),
        client_token: update.client_token.clone(),
    });
    Ok(Plan {
        write,
        reported_changes: reported.changes,
        desired_changes: desired.changes,
        acknowledged,
    })
}

struct Part {
    document: Document,
    version: Version,
    changes: Option<Changes>,
    dirty: bool,
}

impl Part {
    fn new_document(&self) -> NewDocument {
        NewDocument {
            document: self.document.clone(),
            expected: self.version,
        }
    }
}

/// One of the two documents, merged with what was sent for it.
fn part(
    sent: Option<&Sent>,
    held: Option<&Held>,
    model: &Model,
    now: Timestamp,
) -> Result<Part, PersistenceError> {
    let version = held.map_or(Version::NONE, |held| held.version);
    let document = held.map(|held| held.document.clone()).unwrap_or_default();
    let Some(sent) = sent else {
        return Ok(Part {
            document,
            version,
            changes: None,
            dirty: false,
        });
    };
    if let Some(expected) = sent.expected
        && expected != version
    {
        return Err(PersistenceError::Conflict {
            expected,
            actual: held.map(|held| held.version),
        });
    }
    let merged = merge(&document, &sent.document, sent.mode, model, now);
    // The first document is written even when it is empty: it is there from then on.
    let dirty = merged.changed() || held.is_none();
    Ok(Part {
        document: merged.document,
        version,
        changes: Some(merged.changes),
        dirty,
    })
}

/// What is stored once a write has taken place.
pub(super) fn after(stored: &Snapshot, write: &Write) -> Snapshot {
    let held = |state: State| {
        let (new, old) = match state {
            State::Reported => (&write.reported, &stored.reported),
            State::Desired => (&write.desired, &stored.desired),
        };
        match new {
            Some(new) => Some(Held {
                document: new.document.clone(),
                version: new.expected.next(),
                timestamp: write.timestamp,
                zone: write.zone.clone(),
                client_token: write.client_token.clone(),
            }),
            None => old.clone(),
        }
    };
    Snapshot {
        reported: held(State::Reported),
        desired: held(State::Desired),
    }
}

/// Whether what is stored is exactly what that write would have left: it took place after all.
pub(super) fn took_place(stored: &Snapshot, write: &Write) -> bool {
    let wrote = after(&Snapshot::default(), write);
    let is = |wrote: &Option<Held>, stored: &Option<Held>| wrote.is_none() || wrote == stored;
    is(&wrote.reported, &stored.reported) && is(&wrote.desired, &stored.desired)
}
