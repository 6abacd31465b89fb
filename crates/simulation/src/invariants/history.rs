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
}

type Item = (ShadowId, ShadowItem);

impl<'a> Write<'a> {
    fn of(change: &'a Change) -> Option<Write<'a>> {
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
        Some(Write {
            change,
            shadow: ShadowId::named(id, name).ok()?,
            key: HistoryKey {
                id: id.to_owned(),
                name: name.to_owned(),
                item,
                time: written["timestamp"].as_u64()?,
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
}

pub(super) async fn check(evidence: &Evidence<'_>) {
    let changes = evidence.changes.iter();
    let writes: Vec<Write<'_>> = changes.filter_map(|change| Write::of(change)).collect();
    no_accepted_report_is_lost(evidence, &writes);
    every_write_has_one_entry(evidence, &writes);
    states_equal_the_reference_model(evidence, &writes).await;
    for (number, follower) in evidence.followers.all().iter().enumerate() {
        the_feed_is_complete(evidence, &writes, (number, follower));
    }
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

/// Places of the writes that can be recorded, by item in order.
fn recordable<'w>(writes: &'w [Write<'_>]) -> BTreeMap<Item, Vec<&'w HistoryKey>> {
    let mut all: BTreeMap<Item, Vec<&HistoryKey>> = BTreeMap::new();
    for write in writes.iter().filter(|write| !write.change.poisoned) {
        all.entry(write.item()).or_default().push(&write.key);
    }
    all
}

/// Every write whose record is readable has one entry with its version. Entries of an item are written in order.
fn every_write_has_one_entry(evidence: &Evidence<'_>, writes: &[Write<'_>]) {
    let mut found: BTreeMap<Item, Vec<HistoryKey>> = BTreeMap::new();
    for key in entries(evidence) {
        let Ok(shadow) = ShadowId::named(&key.id, &key.name) else {
            continue;
        };
        let of_item = found.entry((shadow, key.item)).or_default();
        // An entry that is written again stays the same entry.
        if !of_item.contains(&key) {
            of_item.push(key);
        }
    }
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

/// Keys of the entries, in the order of their writes.
fn entries(evidence: &Evidence<'_>) -> Vec<HistoryKey> {
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
            keys.extend(HistoryKey::parse(text("PK"), text("SK")));
        }
    }
}

/// States that were read meanwhile and those that are read at the end are those after the writes until then. Only next to
/// an unreadable record there is no answer; while the run goes on, also where an entry is not written yet.
async fn states_equal_the_reference_model(evidence: &Evidence<'_>, writes: &[Write<'_>]) {
    for answer in evidence.historians.answers() {
        if !matches!(answer.state, StateAt::NotRecorded) {
            let (shadow, at) = (&answer.shadow, answer.at);
            is_state(evidence, writes, shadow, at, &answer.state);
        }
    }
    let shadows: BTreeSet<&ShadowId> = writes.iter().map(|write| &write.shadow).collect();
    for shadow in shadows {
        let of_shadow = || writes.iter().filter(|write| write.shadow == *shadow);
        let unreadable = of_shadow().any(|write| write.change.poisoned);
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
            if !(unreadable && matches!(state, StateAt::NotRecorded)) {
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
        if let Some(before) = seen.insert(&change.id, change) {
            evidence.expect("feed-duplicates-share-an-id", before == change, || {
                format!("reader {number}: {before:?} came again as {change:?}")
            });
            continue;
        }
        let write = by_id.get(&*change.id);
        evidence.expect("the-feed-matches-the-writes", write.is_some(), || {
            format!("reader {number}: {change:?} was never written")
        });
        if let Some(write) = write {
            let is_same = matches(change, write, writes);
            evidence.expect("the-feed-matches-the-writes", is_same, || {
                format!("reader {number}: {change:?} of {:?}", write.change)
            });
            order.entry(write.item()).or_default().push(&write.key);
        }
    }
    let Some(since) = follower.since else {
        let is_new = !writes.iter().any(|write| !write.change.poisoned);
        evidence.expect("feed-readers-miss-nothing", is_new, || {
            format!("reader {number} has never read")
        });
        return;
    };
    for write in writes.iter().filter(|write| !write.change.poisoned) {
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

/// Returns whether a change in the feed has the place and the values of a write.
fn matches(change: &FeedChange, write: &Write<'_>, writes: &[Write<'_>]) -> bool {
    let recorded = &change.change;
    let same_place = change.shadow == write.shadow
        && change.item == write.key.item
        && recorded.time.nanoseconds() == i128::from(write.key.time)
        && recorded.version.0 as u64 == write.key.version
        && recorded.operation == write.operation;
    // After an unreadable record the state before is not known.
    let mut before = writes
        .iter()
        .take_while(|one| !std::ptr::eq(*one, write))
        .filter(|one| one.item() == write.item());
    let is_known = !before.any(|one| one.change.poisoned);
    let same_values = recorded.documents.iter().all(|document| {
        let Some(values) = &document.values else {
            return !is_known;
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
