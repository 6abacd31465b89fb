//! Order and loss on bad days: a shard of the stream is read as Lambda reads it, batch by batch, again
//! from the reported record, and the whole batch after a crash, while every channel fails in every way
//! and processes end in the middle of a batch.
//!
//! Afterwards every change has arrived at every target that wants it, or was parked where its target
//! refuses it for good; per key in the order of the stream; and what came twice came with the same id
//! and the same content.

mod flaky;
mod history;

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use antumbra_notify::Listener;
use antumbra_service::clock::{Clock, ManualClock};
use antumbra_shadow::Model;
use fastrand::Rng;

use crate::channels::{TIME, clock, registrations};
use crate::stream::sequence_number;
use flaky::{Weather, World};
use history::{History, Notification, Place};

const SEEDS: u64 = 12;
const CHANGES: usize = 600;
const LARGEST_BATCH: usize = 50;

/// Runs a future for so many polls and no further, as a process that ends runs its last.
struct Steps<F> {
    future: Pin<Box<F>>,
    left: usize,
}

impl<F: Future> Future for Steps<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<F::Output>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        self.left -= 1;
        self.future.as_mut().poll(context).map(Some)
    }
}

/// What a run went through, so that a test can tell a bad day from a fine one.
#[derive(Debug, Default)]
struct Day {
    invocations: usize,
    crashes: usize,
    resumed: usize,
    retried: usize,
    parked: usize,
}

/// Reads the shard to its end.
async fn read_shard(history: &History, world: &World, random: &mut Rng) -> Day {
    let clock: Arc<ManualClock> = Arc::new(clock());
    let start = || {
        let rules = registrations(&history::rules());
        Listener::new(rules, world, Model::default(), clock.clone()).unwrap()
    };
    let mut listener = start();
    let (mut day, mut at) = (Day::default(), 0);
    while at < history.records.len() {
        day.invocations += 1;
        assert!(day.invocations < CHANGES, "the shard is blocked");
        let end = (at + random.usize(1..=LARGEST_BATCH)).min(history.records.len());
        let event = format!("{{\"Records\":[{}]}}", history.texts[at..end].join(","));
        let dies = world.weather != Weather::Fine && random.u8(..100) < 25;
        let steps = Steps {
            future: Box::pin(listener.handle(event.as_bytes(), clock.now().after(TIME))),
            left: if dies {
                random.usize(..120)
            } else {
                usize::MAX
            },
        };
        let Some(handled) = steps.await else {
            day.crashes += 1;
            listener = start();
            continue;
        };
        let handled = handled.unwrap();
        assert_eq!(handled.records, end - at);
        day.retried += handled.retried;
        day.parked += handled.parked;
        let done = match &handled.resume_at {
            None => end,
            Some(reported) => {
                day.resumed += 1;
                let is_it = |record: &usize| sequence_number(*record as u64) == *reported;
                (at..end).find(is_it).expect("a record of this batch")
            }
        };
        // Lambda never shows again what lies before the reported record.
        for (place, notification) in history.wanted[at..done].iter().flatten() {
            let there = world.has(*place, notification);
            assert!(
                there,
                "claimed done, and not there: {place:?} {notification:?}"
            );
        }
        at = done;
    }
    day
}

/// What must hold in the end, whatever happened.
fn check(history: &History, world: &World) {
    let mut wanted: HashMap<Place, Vec<&Notification>> = HashMap::new();
    for (place, notification) in history.wanted.iter().flatten() {
        wanted.entry(*place).or_default().push(notification);
    }
    for (place, wanted) in &mut wanted {
        let arrived = world.arrived(*place);
        let parked = world.parked(*place);
        let mut got: Vec<_> = arrived
            .iter()
            .map(|(what, _)| what)
            .chain(&parked)
            .collect();
        got.sort();
        wanted.sort();
        assert!(
            got == *wanted,
            "{place:?}: something is missing, or too much"
        );

        let mut last: HashMap<&str, (usize, usize)> = HashMap::new();
        for (what, _) in &arrived {
            let turn = (history.record_of(what), what.turn());
            if let Some(before) = last.insert(&what.key, turn) {
                assert!(before < turn, "{place:?}: {what:?} came after {before:?}");
            }
        }
        for (what, message) in &arrived {
            history.check_content(what, message);
        }
    }
}

async fn simulate(seed: u64) -> Day {
    let mut random = Rng::with_seed(seed);
    let history = History::new(&mut random, CHANGES);
    let world = World::new(&mut random, Weather::Storm);
    let day = read_shard(&history, &world, &mut random).await;
    check(&history, &world);
    day
}

#[tokio::test]
async fn every_change_arrives_in_order_whatever_happens() {
    let mut all = Day::default();
    for seed in 0..SEEDS {
        let day = simulate(seed).await;
        all.crashes += day.crashes;
        all.resumed += day.resumed;
        all.retried += day.retried;
        all.parked += day.parked;
    }
    // Else the weather was too good to prove anything.
    let bad = all.crashes > 50 && all.resumed > 50 && all.retried > 5_000 && all.parked > 50;
    assert!(bad, "{all:?}");
}

#[tokio::test]
async fn on_a_fine_day_everything_arrives_once() {
    let mut random = Rng::with_seed(1);
    let history = History::new(&mut random, CHANGES);
    let world = World::new(&mut random, Weather::Fine);
    let day = read_shard(&history, &world, &mut random).await;
    check(&history, &world);
    assert_eq!((day.resumed, day.retried), (0, 0), "{day:?}");
    assert_eq!(world.duplicates(), 0);
}
