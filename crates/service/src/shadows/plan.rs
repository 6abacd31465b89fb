//! The decision: an update and what is stored make a write, or none.
//!
//! Pure; the executor in [`super::engine`] has no choices left.

use antumbra_shadow::{
    AcknowledgedLeaves, Acknowledgements, Changes, Document, LeafTimes, Model, State, Timestamp,
    acknowledge, merge_in_order, merge_older,
};

use super::adapter::{ITEM_BYTES, item_bytes};
use super::id::Zone;
use super::store::{DocumentSet, Layout, NewDocument, Snapshot, StoredDocument, Write, Written};
use super::update::{DesiredMode, Update};
use crate::store::{StoreError, Version};

/// Plan of an update, based on the stored documents.
#[derive(Debug)]
pub(super) struct Plan {
    /// Write to carry out; `None` if nothing changes.
    pub(super) write: Option<Write>,
    pub(super) reported_changes: Option<Changes>,
    pub(super) desired_changes: Option<Changes>,
    pub(super) acknowledged: Acknowledgements,
}

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
    if let Some((reported, desired)) = update.expected_versions {
        for (expected, held) in [(reported, &stored.reported), (desired, &stored.desired)] {
            let actual = held.as_ref().map(|held| held.version);
            if actual.unwrap_or(Version::NONE) != expected {
                return Err(StoreError::Conflict { expected, actual });
            }
        }
    }
    let part = |state| part(update, state, stored, model, now);
    let (reported, mut desired) = (part(State::Reported)?, part(State::Desired)?);
    let mut acknowledged = Acknowledgements::default();
    if update.reported.is_some() && update.desired_mode == DesiredMode::UseDesiredState {
        let done = acknowledge(&reported.document, &desired.document, model);
        if !done.acknowledged.is_empty() {
            let time = update.time.map_or(now, |time| time.max(now));
            desired.times = desired
                .times
                .after(&desired.document, &done.desired, model, time);
            let stored = stored.desired.as_ref();
            desired.acknowledged = stored.and_then(|stored| {
                let (updated, left) = (&desired.document, &done.desired);
                AcknowledgedLeaves::between(&stored.document, updated, left, model)
            });
            desired.document = done.desired;
            desired.dirty = true;
        }
        acknowledged = done.acknowledged;
    }
    Ok(Plan {
        write: write(update, stored, layout, whole, now, &reported, &desired),
        reported_changes: reported.changes,
        desired_changes: desired.changes,
        acknowledged,
    })
}

/// Returns the write of the changed documents, if any.
fn write(
    update: &Update,
    stored: &Snapshot,
    layout: Layout,
    whole: Version,
    now: Timestamp,
    reported: &Part,
    desired: &Part,
) -> Option<Write> {
    let both = layout == Layout::Combined;
    let dirty = reported.dirty || desired.dirty;
    if !dirty && !reported.times_dirty && !desired.times_dirty {
        return None;
    }
    // If both documents are deleted and one is created alone, its version continues from that of the shadow.
    let alone = stored.is_absent() && !both && reported.dirty != desired.dirty;
    let min_version = if alone { whole } else { Version::NONE };
    let new = |part: &Part, held: &Option<StoredDocument>| {
        let times_only = !(part.dirty || both && dirty);
        (both || part.dirty || part.times_dirty).then(|| NewDocument {
            document: part.document.clone(),
            expected: part.version,
            min_version,
            times: Some(part.times.clone()),
            expected_times: held.as_ref().map_or(0, |held| held.times_version),
            times_only,
            // One item has one zone.
            zone: match both {
                true => update.zone.clone().or_else(|| part.zone.clone()),
                false => part.zone.clone(),
            },
            acknowledged: part.acknowledged.clone(),
        })
    };
    // If the shadow must have an expected version, the unwritten document must not change either.
    let other_version = (update.expects_shadow() && !both && reported.dirty != desired.dirty)
        .then_some(if reported.dirty { desired } else { reported })
        .filter(|other| !other.times_dirty)
        .map(|part| part.version);
    let write = Write {
        shadow: update.shadow.clone(),
        reported: new(reported, &stored.reported),
        desired: new(desired, &stored.desired),
        timestamp: stored.next_time(now),
        client_token: update.client_token.clone(),
        other_version,
    };
    drop_leaf_times_if_too_large(write, layout)
}

/// One of the two documents, merged with what was sent for it.
struct Part {
    document: Document,
    version: Version,
    times: LeafTimes,
    zone: Option<Zone>,
    changes: Option<Changes>,
    dirty: bool,
    /// The message is newer than the recorded times, and changes nothing else.
    times_dirty: bool,
    /// Leaves of the stored document that are missing because they are reported.
    acknowledged: Option<AcknowledgedLeaves>,
}

fn part(
    update: &Update,
    state: State,
    stored: &Snapshot,
    model: &Model,
    now: Timestamp,
) -> Result<Part, StoreError> {
    let (sent, held) = match state {
        State::Reported => (&update.reported, &stored.reported),
        State::Desired => (&update.desired, &stored.desired),
    };
    let (sent, held) = (sent.as_ref(), held.as_ref());
    let mut part = Part {
        document: held.map(|held| held.document.clone()).unwrap_or_default(),
        version: held.map_or(Version::NONE, |held| held.version),
        times: held.map(StoredDocument::leaf_times).unwrap_or_default(),
        zone: held.and_then(|held| held.zone.clone()),
        changes: None,
        dirty: false,
        times_dirty: false,
        acknowledged: None,
    };
    let Some(sent) = sent else {
        return Ok(part);
    };
    if let Some(expected) = sent.expected
        && expected != part.version
    {
        return Err(StoreError::Conflict {
            expected,
            actual: held.map(|held| held.version),
        });
    }
    // A message from before a delete does not bring the document back.
    let deleted = stored.deleted.at.filter(|_| held.is_none());
    if let Some(deleted) = deleted {
        part.times = LeafTimes::removed(deleted);
    }
    let newest = sent.held.iter().map(|held| held.since).max();
    let is_late =
        matches!((update.time.or(newest), deleted), (Some(time), Some(deleted)) if time < deleted);
    let mut changed = false;
    for held in &sent.held {
        let (document, times) = (&part.document, &part.times);
        let merged = merge_older(document, times, &held.values, held.since, model, now);
        changed |= merged.changed();
        part.document = merged.document;
        part.times = merged.times.unwrap_or_default();
    }
    let (document, times) = (&part.document, &part.times);
    let merged = merge_in_order(
        document,
        times,
        &sent.document,
        update.time,
        sent.mode,
        model,
        now,
    );
    // The first document is written even if it is empty, so that it exists.
    part.dirty = changed || merged.changed() || (held.is_none() && !is_late);
    part.times_dirty = !part.dirty
        && held.is_some()
        && update.time.is_some()
        && !update.changes_only
        && merged.times_changed();
    part.document = merged.document;
    part.times = merged.times.unwrap_or_default();
    part.zone = update.zone.clone().or(part.zone);
    part.changes = Some(merged.changes);
    Ok(part)
}

/// Drops the times of leaves if they alone make the write too large, and then the record of acknowledged leaves: no
/// document is rejected because of them.
fn drop_leaf_times_if_too_large(mut write: Write, layout: Layout) -> Option<Write> {
    let items: &[&[State]] = match layout {
        Layout::Separate => &[&[State::Reported], &[State::Desired]],
        Layout::Combined => &[&[State::Reported, State::Desired]],
    };
    let too_large = |write: &Write| {
        let mut items = items.iter();
        items.any(|states| item_bytes(write, states) > ITEM_BYTES)
    };
    if too_large(&write) {
        let written = |part: &NewDocument| !part.times_only;
        for part in [&mut write.reported, &mut write.desired] {
            *part = part.take().filter(written);
            if let Some(part) = part {
                part.times = None;
            }
        }
    }
    if too_large(&write)
        && let Some(desired) = &mut write.desired
    {
        desired.acknowledged = None;
    }
    (write.reported.is_some() || write.desired.is_some()).then_some(write)
}

/// Returns the stored documents after a write.
pub(super) fn after(stored: &Snapshot, write: &Write, written: &Written) -> Snapshot {
    let held = |state: State| {
        let (new, old, version) = match state {
            State::Reported => (&write.reported, &stored.reported, written.reported),
            State::Desired => (&write.desired, &stored.desired, written.desired),
        };
        match new {
            Some(new) => {
                let version = version.unwrap_or(new.expected.next());
                Some(new.stored(write, version, old.as_ref()))
            }
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
    let is = |new: &Option<NewDocument>, held: &Option<StoredDocument>| match (new, held) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(new), Some(held)) => {
            let version = match new.expected {
                Version::NONE => held.version,
                expected if new.times_only => expected,
                expected => expected.next(),
            };
            new.stored(write, version, Some(held)) == *held && version == held.version
        }
    };
    is(&write.reported, &stored.reported) && is(&write.desired, &stored.desired)
}
