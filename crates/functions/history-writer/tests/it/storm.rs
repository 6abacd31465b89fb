//! A seeded storm of writes: the state at any time is that of a replay of the writes.
//!
//! `ANTUMBRA_STORM_PAIRS=10000` compares that many pairs of a shadow and a time per storm; `scripts/check-history` does.

use std::time::Duration;

use antumbra_service::history::{DocumentChange, StateAt};
use antumbra_service::shadows::{DocumentSet, Layout, ShadowId, State, Update};
use antumbra_shadow::{Document, Mode, Timestamp};
use fastrand::Rng;
use futures_util::stream::{self, StreamExt};
use serde_json::{Map, Value, json};

use crate::rig::{Rig, start};

const SHADOWS: usize = 12;

/// A storm: the number of its writes, and of pairs of a shadow and a time that are compared.
#[derive(Clone, Copy)]
struct Storm {
    writes: usize,
    pairs: usize,
    /// One write in so many has a large value; 0 for none.
    large: u32,
    /// The largest document has more bytes.
    largest: usize,
}

const SMALL: Storm = Storm {
    writes: 700,
    pairs: 1_000,
    large: 0,
    largest: 200,
};
/// Entries of more than one item, and documents up to the largest.
const LARGE: Storm = Storm {
    writes: 160,
    pairs: 60,
    large: 4,
    largest: 350_000,
};

impl Storm {
    /// The number of pairs to compare: by default so few that the test is quick.
    fn pairs(self) -> usize {
        let wanted = std::env::var("ANTUMBRA_STORM_PAIRS");
        let wanted = wanted.ok().map(|wanted| wanted.parse::<usize>().unwrap());
        wanted.unwrap_or(self.pairs)
    }
}

/// The documents of a shadow since a time.
type Moment = (Timestamp, Option<Document>, Option<Document>);

fn shadow(number: usize) -> ShadowId {
    // Names that differ only behind a separator.
    let names = ["main", "a", "a#", "a#1", "#", "a%23"];
    ShadowId::named(format!("My House#{}", number / 6), names[number % 6]).unwrap()
}

fn text(random: &mut Rng, bytes: usize) -> String {
    (0..bytes).map(|_| random.alphanumeric()).collect()
}

fn value(random: &mut Rng, depth: usize) -> Value {
    match random.u8(0..10) {
        0 | 1 => json!(random.i32(-50..50)),
        2 => json!(random.bool()),
        3 => json!({"value": random.i32(0..9), "timestamp": 1_700_000_000 + random.i32(0..99)}),
        4 => (0..random.usize(0..4))
            .map(|_| value(random, depth + 3))
            .collect(),
        5 => {
            let ids = 0..random.usize(1..5);
            let element = |id| json!({"id": id, "on": random.bool()});
            ids.map(element).collect()
        }
        6 | 7 if depth < 3 => Value::Object(members(random, depth + 1)),
        8 => {
            let bytes = random.usize(0..40);
            json!(text(random, bytes))
        }
        _ => Value::Null,
    }
}

fn members(random: &mut Rng, depth: usize) -> Map<String, Value> {
    let names = ["a", "b", "c/d", "e~f", "g\"h", "i"];
    let count = random.usize(1..4);
    (0..count)
        .map(|_| {
            (
                random.choice(names).unwrap().to_owned(),
                value(random, depth),
            )
        })
        .collect()
}

/// A document to be merged: mostly small, sometimes up to the largest.
fn document(random: &mut Rng, storm: Storm) -> Document {
    let mut members = members(random, 0);
    match random.u32(0..storm.large.max(2)) {
        _ if storm.large == 0 => {}
        0 => {
            // Two large values: a change of one is smaller than the document, and both nearly fill an item.
            let most = *random.choice([1, 100, 10_000, 195_000].iter()).unwrap();
            let (name, bytes) = (
                format!("blob{}", random.u8(0..2)),
                random.usize(most * 9 / 10..=most),
            );
            members.insert(name, json!(text(random, bytes)));
        }
        1 => {
            members.insert(
                "blob".to_owned(),
                json!("x".repeat(random.usize(1..100_000))),
            );
        }
        _ => {}
    }
    Document::from_value(&members).unwrap()
}

/// One write of the storm; it may change nothing, or be too large.
async fn write(rig: &Rig, id: &ShadowId, random: &mut Rng, storm: Storm) {
    let update = match random.u8(0..20) {
        0 => {
            let _ = rig.shadows.delete_shadow(id, None, None, None).await;
            return;
        }
        1..=4 => Update::desire(id.clone(), document(random, storm)),
        5..=7 => {
            Update::report(id.clone(), document(random, storm)).and_desire(document(random, storm))
        }
        8 => Update::report(id.clone(), Document::default()).mode(Mode::ClientIsMaster),
        9..=12 => Update::report(id.clone(), document(random, storm)).mode(Mode::Patch),
        _ => Update::report(id.clone(), document(random, storm)),
    };
    let _ = rig.shadows.update(update).await;
}

async fn moment(rig: &Rig, id: &ShadowId) -> Moment {
    let (reported, desired) = match rig.shadows.read(id, DocumentSet::Both).await {
        Ok(found) => (
            found.reported.map(|held| held.document),
            found.desired.map(|held| held.document),
        ),
        Err(error) => {
            assert!(error.is_not_found(), "{error}");
            (None, None)
        }
    };
    (rig.now(), reported, desired)
}

async fn the_past_is_that_of_a_replay(layout: Layout, storm: Storm, seed: u64) {
    let mut random = Rng::with_seed(seed);
    let mut rig = Rig::new(layout).await;
    let mut log: Vec<Vec<Moment>> = vec![vec![(start(), None, None)]; SHADOWS];
    for _ in 0..storm.writes {
        rig.clock
            .advance(Duration::from_millis(random.u64(1..5000)));
        let number = random.usize(0..SHADOWS);
        write(&rig, &shadow(number), &mut random, storm).await;
        log[number].push(moment(&rig, &shadow(number)).await);
    }
    let end = rig.now();
    has_all_kinds(&log, storm, layout);
    // Batches of any size, and some again, as after a lost response.
    let records = rig.records().await;
    // An event has at most 6 MB.
    let most = if storm.large == 0 { 200 } else { 7 };
    let mut done = 0;
    while done < records.len() {
        let batch = &records[done..(done + random.usize(1..most)).min(records.len())];
        let summary = rig.record(batch).await;
        assert_eq!((summary.failed, summary.unrecorded), (0, 0), "{summary:?}");
        done += if random.u8(0..5) == 0 {
            batch.len() / 2
        } else {
            batch.len()
        };
    }

    let span = (end.nanoseconds() - start().nanoseconds()) as u64;
    let pairs: Vec<(usize, u64)> = (0..storm.pairs())
        .map(|_| (random.usize(0..SHADOWS), random.u64(0..=span)))
        .collect();
    let (rig, log) = (&rig, &log);
    let checks = stream::iter(pairs).map(|(number, after)| async move {
        let at = start().after(Duration::from_nanos(after));
        let found = rig.reader.state_at(&shadow(number), at, end).await.unwrap();
        let found = match found {
            StateAt::Existed(shadow) => (
                shadow.reported.map(|held| held.document),
                shadow.desired.map(|held| held.document),
            ),
            StateAt::DidNotExist => (None, None),
            other => panic!("seed {seed}: {} at {at}: {other:?}", shadow(number)),
        };
        let moments = log[number].iter();
        let (_, reported, desired) = moments.rev().find(|moment| moment.0 <= at).unwrap();
        let expected = (reported.clone(), desired.clone());
        assert!(found == expected, "seed {seed}: {} at {at}", shadow(number));
    });
    checks.buffer_unordered(16).collect::<Vec<()>>().await;
    for (number, moments) in log.iter().enumerate() {
        replayed(rig, &shadow(number), moments, [start(), end], 1000).await;
        let middle = start().after(Duration::from_nanos(span / 2));
        replayed(rig, &shadow(number), moments, [middle, end], 7).await;
    }
}

/// Checks that the storm had documents of all sizes, deletes and re-creations.
fn has_all_kinds(log: &[Vec<Moment>], storm: Storm, layout: Layout) {
    let documents = log.iter().flatten();
    let documents = documents.flat_map(|moment| [&moment.1, &moment.2]);
    let sizes = documents.flatten().map(|document| document.as_str().len());
    let (smallest, largest) = (sizes.clone().min().unwrap(), sizes.max().unwrap());
    assert!(smallest <= 10, "{layout:?} {smallest}");
    assert!(largest > storm.largest, "{layout:?} {largest}");
    let exists = |moment: &Moment| moment.1.is_some() || moment.2.is_some();
    let became = |exists_then: bool| {
        let two = log.iter().flat_map(|moments| moments[1..].windows(2));
        let changed = two.filter(|two| exists(&two[0]) != exists(&two[1]));
        changed.filter(|two| exists(&two[1]) == exists_then).count()
    };
    assert!(became(false) > 2 && became(true) > 2, "{layout:?}");
}

/// Compares the documents before and after recorded changes with those that were read after each write.
async fn replayed(
    rig: &Rig,
    id: &ShadowId,
    moments: &[Moment],
    [from, to]: [Timestamp; 2],
    limit: usize,
) {
    let document = |moment: &Moment, state: State| match state {
        State::Reported => moment.1.clone(),
        State::Desired => moment.2.clone(),
    };
    let mut count = 0;
    let visit = |change: DocumentChange| {
        let after = moments
            .iter()
            .rposition(|one| one.0 <= change.time)
            .unwrap();
        assert_eq!(change.new, document(&moments[after], change.state), "{id}");
        assert_eq!(
            change.old,
            document(&moments[after - 1], change.state),
            "{id}"
        );
        assert!(change.time >= from);
        count += 1;
        true
    };
    let replay = rig.reader.replay(id, [from, to], limit, to, visit).await;
    let has_more = replay.unwrap();
    let of = |state| {
        let two = moments.windows(2).filter(|two| two[1].0 >= from);
        two.filter(|two| document(&two[0], state) != document(&two[1], state))
            .count()
    };
    let expected = of(State::Reported) + of(State::Desired);
    assert!(count == expected || has_more, "{id}: {count} of {expected}");
    assert!(count > 0 || expected == 0, "{id}");
}

#[tokio::test]
async fn states_of_separate_items_are_those_of_a_replay() {
    the_past_is_that_of_a_replay(Layout::Separate, SMALL, 1).await;
}

#[tokio::test]
async fn states_of_combined_items_are_those_of_a_replay() {
    the_past_is_that_of_a_replay(Layout::Combined, SMALL, 2).await;
}

#[tokio::test]
async fn states_of_large_documents_are_those_of_a_replay() {
    for layout in [Layout::Separate, Layout::Combined] {
        the_past_is_that_of_a_replay(layout, LARGE, 3).await;
    }
}
