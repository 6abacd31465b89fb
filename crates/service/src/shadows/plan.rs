//! The decision: an update and what is stored make a write, or none.
//!
//! Pure; the executor in [`super::engine`] has no choices left.

use antumbra_shadow::{
    Acknowledgement, Changes, Document, LeafTimes, Model, State, Timestamp, acknowledge, merge,
};

use super::adapter::{ITEM_BYTES, item_bytes};
use super::store::{
    DocumentSet, Layout, NewDocument, Snapshot, StoredDocument, Write, Written, seconds,
};
use super::update::{DesiredMode, Sent, Update};
use crate::store::{StoreError, Version};

/// Plan of an update, based on the stored documents.
#[derive(Debug)]
pub(super) struct Plan {
    /// Write to carry out; `None` if nothing changes.
    pub(super) write: Option<Write>,
    pub(super) reported_changes: Option<Changes>,
    pub(super) desired_changes: Option<Changes>,
    pub(super) acknowledged: Vec<Acknowledgement>,
}

/// Returns the documents that an update needs.
pub(super) fn documents(update: &Update, layout: Layout) -> DocumentSet {
    let acknowledges = update.desired_mode == DesiredMode::UseDesiredState;
    match (&update.reported, &update.desired) {
        _ if layout == Layout::Combined || update.read_both => DocumentSet::Both,
        (Some(_), None) if !acknowledges => DocumentSet::Reported,
        (None, _) => DocumentSet::Desired,
        _ => DocumentSet::Both,
    }
}

pub(super) fn plan(
    update: &Update,
    stored: &Snapshot,
    layout: Layout,
    model: &Model,
    leaf_times: bool,
    now: Timestamp,
) -> Result<Plan, StoreError> {
    let whole = stored.version(layout);
    if let Some(expected) = update.expected_shadow_version
        && expected != whole
        && !(stored.is_absent() && expected == Version::NONE)
    {
        return Err(StoreError::Conflict {
            expected,
            actual: (!stored.is_absent()).then_some(whole),
        });
    }
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
    // Created alone where both are gone, one document takes up where the whole left off.
    let alone = stored.is_absent() && !both && reported.dirty != desired.dirty;
    let min_version = if alone { whole } else { Version::NONE };
    let new = |part: &Part, held: &Option<StoredDocument>| NewDocument {
        document: part.document.clone(),
        expected: part.version,
        min_version,
        times: leaf_times.then(|| part.times(held.as_ref(), model, seconds(now))),
    };
    // The one that is not written must stay as it is for as long as the whole must.
    let other_version =
        (update.expected_shadow_version.is_some() && !both && reported.dirty != desired.dirty)
            .then_some(if reported.dirty { &desired } else { &reported })
            .map(|part| part.version);
    let write = dirty.then(|| Write {
        shadow: update.shadow.clone(),
        reported: (both || reported.dirty).then(|| new(&reported, &stored.reported)),
        desired: (both || desired.dirty).then(|| new(&desired, &stored.desired)),
        timestamp: now,
        zone: update.zone.clone(),
        client_token: update.client_token.clone(),
        other_version,
    });
    let write = write.map(|write| drop_leaf_times_if_too_large(write, layout));
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
    /// Returns the time of each leaf after this write.
    fn times(&self, held: Option<&StoredDocument>, model: &Model, seconds: i64) -> LeafTimes {
        match held {
            Some(held) => held
                .leaf_times()
                .after(&held.document, &self.document, model, seconds),
            None => LeafTimes::all(&self.document, seconds),
        }
    }
}

/// The same without the times of leaves where they alone make it too large: no document is refused for them.
fn drop_leaf_times_if_too_large(mut write: Write, layout: Layout) -> Write {
    let items: &[&[State]] = match layout {
        Layout::Separate => &[&[State::Reported], &[State::Desired]],
        Layout::Combined => &[&[State::Reported, State::Desired]],
    };
    if items
        .iter()
        .any(|states| item_bytes(&write, states) > ITEM_BYTES)
    {
        let parts = [&mut write.reported, &mut write.desired];
        for part in parts.into_iter().flatten() {
            part.times = None;
        }
    }
    write
}

/// One of the two documents, merged with what was sent for it.
fn part(
    sent: Option<&Sent>,
    held: Option<&StoredDocument>,
    model: &Model,
    now: Timestamp,
) -> Result<Part, StoreError> {
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
        return Err(StoreError::Conflict {
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

/// Returns the stored documents after a write.
pub(super) fn after(stored: &Snapshot, write: &Write, written: &Written) -> Snapshot {
    let held = |state: State| {
        let (new, old, version) = match state {
            State::Reported => (&write.reported, &stored.reported, written.reported),
            State::Desired => (&write.desired, &stored.desired, written.desired),
        };
        match new {
            Some(new) => Some(StoredDocument {
                document: new.document.clone(),
                version: version.unwrap_or(new.expected.next()),
                timestamp: write.timestamp,
                zone: write.zone.clone(),
                client_token: write.client_token.clone(),
                times: new.times.clone(),
            }),
            None => old.clone(),
        }
    };
    Snapshot {
        reported: held(State::Reported),
        desired: held(State::Desired),
        deleted: stored.deleted,
    }
}

/// Returns whether the stored documents are exactly those of the write: it was applied after all. A created document
/// may have any version, since it may have existed before.
pub(super) fn already_applied(stored: &Snapshot, write: &Write) -> bool {
    let version = |new: &Option<NewDocument>, held: &Option<StoredDocument>| match (new, held) {
        (Some(new), Some(held)) if new.expected == Version::NONE => Some(held.version),
        _ => None,
    };
    let written = Written {
        reported: version(&write.reported, &stored.reported),
        desired: version(&write.desired, &stored.desired),
    };
    let wrote = after(&Snapshot::default(), write, &written);
    let is = |wrote: &Option<StoredDocument>, stored: &Option<StoredDocument>| {
        wrote.is_none() || wrote == stored
    };
    is(&wrote.reported, &stored.reported) && is(&wrote.desired, &stored.desired)
}
