//! The history and the change feed: every write has its entry, states at a time are those of the writes, and readers of
//! the feed miss nothing.

use std::collections::{BTreeMap, BTreeSet};

use antumbra_dynamodb::HISTORY;
use antumbra_service::history::feed::FeedChange;
use antumbra_service::history::{Operation, StateAt};
use antumbra_service::shadows::{ShadowId, State, StoredDocument};
use antumbra_shadow::Timestamp;
use antumbra_wire::history::HistoryKey;
use antumbra_wire::items::ShadowItem;
use serde_json::{Value, json};

use super::Evidence;
use super::notifications::diff;
use super::shadows::DocumentChange;
use crate::actors::followers::Follower;
use crate::stream::{Change, is_document, stored};

/// Times per shadow for which the state is read at the end.
const TIMES: usize = 12;

/// A write of an item of a shadow.
struct Write<'a> {
    change: &'a Change,
    shadow: ShadowId,
    key: HistoryKey,
    operation: Operation,
    /// It is from before a purge of the shadow.
    purged: bool,
}

type Item = (ShadowId, ShadowItem);

/// Times up to which the past of shadows was purged.
type Purged = BTreeMap<ShadowId, u64>;

impl<'a> Write<'a> {
    fn of(change: &'a Change, purged: &Purged) -> Option<Write<'a>> {
        let id = change.partition.strip_prefix("DS#")?;
        let (kind, name) = change.sort.split_once('#')?;
        let item = match kind {
            "DSR" => ShadowItem::Reported,
            "DSD" => ShadowItem::Desired,
            "DSC" => ShadowItem::Combined,
            _ => return None,
        };
        let operation = match (is_document(&change.old), is_document(&change.new)) {
            _ if change.is_of_times() => return None,
            (true, true) => Operation::Modify,
            (false, true) => Operation::Insert,
            (true, false) => Operation::Remove,
            (false, false) => return None,
        };
        let written = change.new.as_ref()?;
        let shadow = ShadowId::named(id, name).ok()?;
        let time = written["timestamp"].as_u64()?;
        Some(Write {
            change,
            purged: is_purged(purged, &shadow, time),
            shadow,
            key: HistoryKey {
                id: id.to_owned(),
                name: name.to_owned(),
                item,
                time,
                version: written["version"].as_u64()?,
            },
            operation,
        })
    }

    fn item(&self) -> Item {
        (self.shadow.clone(), self.key.item)
    }

    fn document(&self, image: &'a Option<Value>, state: State) -> Option<&'a Value> {
        let image = image.as_ref().filter(|_| is_document(image))?;
        image.get(state.as_str())
    }

    /// Returns whether it has an entry in the end: it could be recorded, and was not purged.
    fn is_kept(&self) -> bool {
        self.change.is_recordable() && !self.purged
    }
}

fn is_purged(purged: &Purged, shadow: &ShadowId, time: u64) -> bool {
    purged.get(shadow).is_some_and(|until| time <= *until)
}

pub(super) async fn check(evidence: &Evidence<'_>) {
    let purged = purged(evidence);
    let changes = evidence.changes.iter();
    let writes = changes.filter_map(|change| Write::of(change, &purged));
    let writes: Vec<Write<'_>> = writes.collect();
    no_accepted_report_is_lost(evidence, &writes);
    every_write_has_one_entry(evidence, &writes, &purged);
    states_equal_the_reference_model(evidence, &writes, &purged).await;
    for (number, follower) in evidence.followers.all().iter().enumerate() {
        the_feed_is_complete(evidence, &writes, (number, follower));
    }
    if !purged.is_empty() {
        nothing_purged_is_in_the_feed(evidence, &writes).await;
    }
}

/// Reads the purges from their items, of which an accepted one has one.
fn purged(evidence: &Evidence<'_>) -> Purged {
    let mut purged = Purged::new();
    for change in &evidence.changes {
        let queued = || {
            let id = change.partition.strip_prefix("DS#")?;
            let shadow = ShadowId::named(id, change.sort.strip_prefix("PURGE#")?).ok()?;
            Some((shadow, change.new.as_ref()?["until"].as_u64()?))
        };
        if let Some((shadow, until)) = queued() {
            let latest = purged.entry(shadow).or_default();
            *latest = until.max(*latest);
        }
    }
    for (shadow, until) in evidence.lamps.purged() {
        let queued = purged.get(&shadow).copied().unwrap_or_default();
        let is_queued = i128::from(queued) >= until.nanoseconds();
        evidence.expect("purged-changes-are-gone", is_queued, || {
            format!("{shadow}: the purge until {until} was accepted and is lost")
        });
    }
    purged
}

fn no_accepted_report_is_lost(evidence: &Evidence<'_>, writes: &[Write<'_>]) {
    for (shadow, number) in evidence.lamps.accepted() {
        let is_number = |write: &Write<'_>| {
            let reported = write.document(&write.change.new, State::Reported);
            let hours = reported.and_then(|reported| reported.get("hours")?.as_u64());
            write.shadow == shadow && hours == Some(number)
        };
        let is_written = writes.iter().any(is_number);
        evidence.expect("nothing-accepted-is-lost", is_written, || {
            format!("{shadow}: {number} was accepted and never written")
        });
    }
}

/// Places of the writes that have an entry, by item in order.
fn recordable<'w>(writes: &'w [Write<'_>]) -> BTreeMap<Item, Vec<&'w HistoryKey>> {
    let mut all: BTreeMap<Item, Vec<&HistoryKey>> = BTreeMap::new();
    for write in writes.iter().filter(|write| write.is_kept()) {
        all.entry(write.item()).or_default().push(&write.key);
    }
    all
}

/// Every write that could be recorded has one entry with its version, unless it was purged. Entries of an item are written
/// in order.
fn every_write_has_one_entry(evidence: &Evidence<'_>, writes: &[Write<'_>], purged: &Purged) {
    let mut found: BTreeMap<Item, Vec<HistoryKey>> = BTreeMap::new();
    for (key, is_deleted) in entries(evidence) {
        let Ok(shadow) = ShadowId::named(&key.id, &key.name) else {
            continue;
        };
        let of_item = found.entry((shadow, key.item)).or_default();
        // An entry that is written again stays the same entry.
        let known = of_item.iter().position(|one| *one == key);
        match known {
            Some(at) if is_deleted => drop(of_item.remove(at)),
            None if !is_deleted => of_item.push(key),
            _ => {}
        }
    }
    for ((shadow, item), keys) in &mut found {
        let left = keys.extract_if(.., |key| is_purged(purged, shadow, key.time));
        let left: Vec<HistoryKey> = left.collect();
        evidence.expect("purged-changes-are-gone", left.is_empty(), || {
            format!("{shadow} {item:?}: {left:?} was purged until {purged:?}")
        });
    }
    found.retain(|_, keys| !keys.is_empty());
    let expected = recordable(writes);
    for (item, expected) in &expected {
        let found = found.remove(item).unwrap_or_default();
        let same = |one: &BTreeSet<&HistoryKey>| *one == expected.iter().copied().collect();
        let complete = same(&found.iter().collect());
        evidence.expect("every-write-has-one-entry", complete, || {
            format!("{item:?}: {found:?} is recorded of {expected:?}")
        });
        let in_order = !complete || found.iter().eq(expected.iter().copied());
        evidence.expect("entries-are-written-in-order", in_order, || {
            format!("{item:?}: {expected:?} was recorded as {found:?}")
        });
    }
    evidence.expect("every-write-has-one-entry", found.is_empty(), || {
        format!("{found:?} was never written")
    });
}

/// Keys of the entries, in the order of their writes and deletes, and whether they were deleted.
fn entries(evidence: &Evidence<'_>) -> Vec<(HistoryKey, bool)> {
    let (mut keys, mut position) = (Vec::new(), 0);
    loop {
        let records = evidence.world.cloud.records(HISTORY.name, position);
        let Some(last) = records.last() else {
            return keys;
        };
        position = stored(&last.dynamodb.sequence_number);
        for record in records {
            let key = serde_json::to_value(&record.dynamodb.keys).unwrap_or_default();
            let text = |name: &str| key[name]["S"].as_str().unwrap_or_default();
            let key = HistoryKey::parse(text("PK"), text("SK"));
            keys.extend(key.map(|key| (key, record.event_name == "REMOVE")));
        }
    }
}

/// States that were read meanwhile and those that are read at the end are those after the writes until then. Only next to
/// an unreadable record, and for times before the history began, there is no answer; while the run goes on, also where an
/// entry is not written yet. In the end no
/// state from before a purge is read.
async fn states_equal_the_reference_model(
    evidence: &Evidence<'_>,
    writes: &[Write<'_>],
    purged: &Purged,
) {
    for answer in evidence.historians.answers() {
        if !matches!(answer.state, StateAt::NotRecorded) {
            let (shadow, at) = (&answer.shadow, answer.at);
            is_state(evidence, writes, shadow, at, &answer.state);
        }
    }
    let shadows: BTreeSet<&ShadowId> = writes.iter().map(|write| &write.shadow).collect();
    for shadow in shadows {
        let of_shadow = || writes.iter().filter(|write| write.shadow == *shadow);
        let has_holes = of_shadow().any(|write| !write.change.is_recordable());
        let around = |write: &Write<'_>| [write.key.time.saturating_sub(1), write.key.time];
        let times: BTreeSet<u64> = of_shadow().flat_map(around).collect();
        let times: Vec<u64> = times.into_iter().collect();
        // All if they are few.
        let chosen: BTreeSet<u64> = match times.len() <= TIMES {
            true => times.into_iter().collect(),
            false => (0..TIMES)
                .map(|_| *evidence.world.chance.pick(&times))
                .collect(),
        };
        for time in chosen {
            let at = Timestamp::from_nanoseconds(time.into());
            let Some(state) = evidence.historians.must_answer(shadow, at).await else {
                continue;
            };
            if is_purged(purged, shadow, time) {
                let is_gone = !matches!(state, StateAt::Existed(_));
                evidence.expect("purged-changes-are-gone", is_gone, || {
                    format!("{shadow} at {at}: {state:?}")
                });
            } else if !(has_holes && matches!(state, StateAt::NotRecorded)) {
                is_state(evidence, writes, shadow, at, &state);
            }
        }
    }
}

/// Compares the state of a shadow at a time with the writes until then.
fn is_state(
    evidence: &Evidence<'_>,
    writes: &[Write<'_>],
    shadow: &ShadowId,
    at: Timestamp,
    state: &StateAt,
) {
    let until = |write: &&Write<'_>| {
        write.shadow == *shadow && i128::from(write.key.time) <= at.nanoseconds()
    };
    let mut last: BTreeMap<ShadowItem, &Write<'_>> = BTreeMap::new();
    for write in writes.iter().filter(until) {
        last.insert(write.key.item, write);
    }
    let expected = [State::Reported, State::Desired].map(|state| {
        let mut of_state = last.values();
        of_state.find_map(|write| {
            let document = write.document(&write.change.new, state)?;
            Some((write.key.version, write.key.time, document.clone()))
        })
    });
    let found = match state {
        StateAt::Existed(shadow) => [&shadow.reported, &shadow.desired].map(held),
        StateAt::DidNotExist => [None, None],
        other => {
            evidence.expect("states-equal-the-reference-model", false, || {
                format!("{shadow} at {at}: {other:?}, expected {expected:?}")
            });
            return;
        }
    };
    evidence.expect(
        "states-equal-the-reference-model",
        found == expected,
        || format!("{shadow} at {at}: {found:?}, expected {expected:?}"),
    );
}

fn held(document: &Option<StoredDocument>) -> Option<(u64, u64, Value)> {
    let held = document.as_ref()?;
    Some((
        held.version.0 as u64,
        held.timestamp.nanoseconds() as u64,
        serde_json::from_str(held.document.as_str()).ok()?,
    ))
}

/// A reader gets every change since its start. The first occurrences of an item's changes are in order without a gap, and
/// a change that comes again is the same.
fn the_feed_is_complete(
    evidence: &Evidence<'_>,
    writes: &[Write<'_>],
    (number, follower): (usize, &Follower),
) {
    let by_id: BTreeMap<&str, &Write<'_>> = writes
        .iter()
        .map(|write| (write.change.id.as_str(), write))
        .collect();
    let mut seen: BTreeMap<&str, &FeedChange> = BTreeMap::new();
    let mut order: BTreeMap<Item, Vec<&HistoryKey>> = BTreeMap::new();
    for change in &follower.received {
        let write = by_id.get(&*change.id);
        if let Some(before) = seen.insert(&change.id, change) {
            // The values before a change are not known any more if they were purged meanwhile.
            let place = |change: &FeedChange| (change.item, change.change.time);
            let may_differ =
                write.is_some_and(|write| earlier(write, writes).any(|one| one.purged));
            let is_same = before == change || may_differ && place(before) == place(change);
            evidence.expect("feed-duplicates-share-an-id", is_same, || {
                format!("reader {number}: {before:?} came again as {change:?}")
            });
            continue;
        }
        evidence.expect("the-feed-matches-the-writes", write.is_some(), || {
            format!("reader {number}: {change:?} was never written")
        });
        if let Some(write) = write {
            let is_same = matches(change, write, writes);
            evidence.expect("the-feed-matches-the-writes", is_same, || {
                format!("reader {number}: {change:?} of {:?}", write.change)
            });
            if !write.purged {
                order.entry(write.item()).or_default().push(&write.key);
            }
        }
    }
    let Some(since) = follower.since else {
        let is_new = !writes.iter().any(Write::is_kept);
        evidence.expect("feed-readers-miss-nothing", is_new, || {
            format!("reader {number} has never read")
        });
        return;
    };
    for write in writes.iter().filter(|write| write.is_kept()) {
        let is_seen = write.change.at <= since || seen.contains_key(&*write.change.id);
        evidence.expect("feed-readers-miss-nothing", is_seen, || {
            format!("reader {number} since {since}: {:?}", write.key)
        });
    }
    let expected = recordable(writes);
    for (item, keys) in order {
        let expected = expected.get(&item).map(Vec::as_slice).unwrap_or_default();
        let first = expected.iter().position(|key| Some(key) == keys.first());
        let kept = &expected[first.unwrap_or_default()..];
        let in_order = kept == keys && (since > 0 || first == Some(0));
        evidence.expect("the-feed-is-in-order-without-a-gap", in_order, || {
            format!("reader {number} {item:?}: {expected:?} came as {keys:?}")
        });
    }
}

/// Changes from before a purge are not in the feed any more, and all others are.
async fn nothing_purged_is_in_the_feed(evidence: &Evidence<'_>, writes: &[Write<'_>]) {
    let changes = evidence.followers.all_changes().await;
    let found: BTreeSet<&str> = changes.iter().map(|change| change.id.as_str()).collect();
    for write in writes {
        let is_found = found.contains(write.change.id.as_str());
        evidence.expect(
            "purged-changes-are-gone",
            !(write.purged && is_found),
            || format!("{:?} was purged and is in the feed", write.key),
        );
        let is_missed = write.is_kept() && !is_found;
        evidence.expect("feed-readers-miss-nothing", !is_missed, || {
            format!("a new reader: {:?}", write.key)
        });
    }
}

/// Returns whether the documents before a write are known: after an unreadable record and after a purge they are not.
fn is_known(write: &Write<'_>, writes: &[Write<'_>]) -> bool {
    earlier(write, writes).all(Write::is_kept)
}

/// The writes of the same item before one.
fn earlier<'w, 'a>(
    write: &'w Write<'a>,
    writes: &'w [Write<'a>],
) -> impl Iterator<Item = &'w Write<'a>> {
    let earlier = writes.iter().take_while(|one| !std::ptr::eq(*one, write));
    earlier.filter(|one| one.item() == write.item())
}

/// Returns whether a change in the feed has the place and the values of a write.
fn matches(change: &FeedChange, write: &Write<'_>, writes: &[Write<'_>]) -> bool {
    let recorded = &change.change;
    let same_place = change.shadow == write.shadow
        && change.item == write.key.item
        && recorded.time.nanoseconds() == i128::from(write.key.time)
        && recorded.version.0 as u64 == write.key.version
        && recorded.operation == write.operation;
    let same_values = recorded.documents.iter().all(|document| {
        let Some(values) = &document.values else {
            return !is_known(write, writes);
        };
        let (state, old, new) = (document.state, &write.change.old, &write.change.new);
        let oracle = diff(&DocumentChange {
            change: write.change,
            device: &write.key.id,
            state: state.as_str(),
            old: write.document(old, state),
            new: write.document(new, state),
            version: Some(write.key.version),
        });
        let value = |text: &Option<String>| {
            let text = text.as_deref();
            text.and_then(|text| serde_json::from_str::<Value>(text).ok())
        };
        let mut found = json!({"added": {}, "updated": {}, "removed": {}});
        for leaf in values {
            let pointer = leaf.pointer.as_str();
            match (value(&leaf.old), value(&leaf.new)) {
                (None, Some(new)) => found["added"][pointer] = new,
                (Some(old), None) => found["removed"][pointer] = old,
                (old, new) => found["updated"][pointer] = json!({"old": old, "new": new}),
            }
        }
        found == oracle
    });
    same_place && same_values
}
