//! The table of all measurements that need only Rust.

use std::time::Instant;

use crate::documents::{self, Pair, Times};
use crate::listeners::{Ours, Sent, load, rules};
use crate::rounds::{Best, MeasuredRun, best, timed};
use crate::runtime;
use crate::variants::{NAMES, RECORDS, Run, SEED, variant};
use antumbra_testkit::stream::{self, Order, Shape};

/// Rounds of which the best counts. More help on a busy machine.
const ROUNDS: usize = 41;

/// A figure, its gate and its aim.
pub(crate) fn row(what: &str, figures: [String; 2], gate: &str, aim: &str) {
    let [small, large] = figures;
    println!("| {what} | {small} | {large} | {gate} | {aim} |");
}

pub(crate) fn head() {
    println!("| what | 1k | 4k | gate | aim |\n|---|---|---|---|---|");
}

/// The ratio of two best times.
pub(crate) fn ratio(best: &Best, a: &str, b: &str) -> String {
    format!("{:.2}", best[a] / best[b])
}

pub(crate) fn print() {
    let both = Shape::ALL.map(|(_, shape)| measure(shape));
    for (name, shape) in Shape::ALL {
        let bytes = stream::event(RECORDS, shape, Order::Same, SEED).len() / RECORDS;
        println!("{name}: {bytes} bytes a record.");
    }
    println!();
    head();
    let us = both.each_ref().map(|best| format!("{:.2}", best["T"]));
    row("T: tokenise only, us per record", us, "", "");
    for (what, a, b, gate, aim) in [
        ("decode all images / T", "decode", "T", "", ""),
        (
            "listener without sending, 1,000 registrations / T",
            "plan",
            "T",
            "",
            "",
        ),
        ("listener, 10 registrations / T", "10 rules", "T", "", ""),
        (
            "listener, 1,000 registrations / T",
            "1,000 rules",
            "T",
            "<= 0.9",
            "0.7",
        ),
        (
            "listener, 1,000 leaf conditions without a key / T",
            "1,000 leaf conditions",
            "T",
            "<= 1.3",
            "1.0",
        ),
        (
            "the same including `lambda_runtime`, CPU time / T",
            "function",
            "T",
            "<= 2.5",
            "1.3",
        ),
        (
            "listener, old and new sent too / T",
            "everything sent",
            "T",
            "",
            "",
        ),
        (
            "a record that matches no registration / T",
            "nobody",
            "T",
            "<= 0.8",
            "0.4",
        ),
        (
            "10,000 registrations / 10 registrations",
            "10,000 rules",
            "10 rules",
            "<= 1.15",
            "1.02",
        ),
        (
            "members in another order / in the same order",
            "another order",
            "1,000 rules",
            "<= 2",
            "1.2",
        ),
        ("aws_lambda_events alone / T", "shelf events", "T", "", ""),
        (
            "listener of shelf crates / ours",
            "shelf",
            "10 rules",
            ">= 10",
            "25",
        ),
        ("json-patch / our diff", "json-patch", "diff", ">= 8", "20"),
        (
            "merge, texts to text / tokenising both",
            "merge of texts",
            "tokenise both",
            "<= 2.5",
            "1.2",
        ),
    ] {
        row(
            what,
            both.each_ref().map(|best| ratio(best, a, b)),
            gate,
            aim,
        );
    }
    let [merge, diff, acknowledge] = growth();
    for (what, figure) in [
        ("merge", merge),
        ("diff", diff),
        ("acknowledge", acknowledge),
    ] {
        let what = format!("{what}, cost per value of 5,000 / of 50");
        row(&what, [figure, String::new()], "<= 1.25", "1.0");
    }
    let [planned, sent] =
        [false, true].map(|all| Shape::ALL.map(|(_, shape)| allocations(shape, all)));
    row(
        "allocations per record, warm, without sending",
        planned,
        "<= 2",
        "0",
    );
    row("allocations per record, warm, with messages", sent, "", "");
    let milliseconds = format!("{:.0}", loading());
    row(
        "loading 10,000 registrations, ms",
        [milliseconds, String::new()],
        "<= 150",
        "20",
    );
}

fn measure(shape: Shape) -> Best {
    let mut candidates: Vec<(String, MeasuredRun)> = NAMES
        .iter()
        .map(|name| ((*name).to_owned(), timed(RECORDS, variant(name, shape))))
        .collect();
    candidates.push(("function".to_owned(), runtime::run(shape)));
    best(ROUNDS, &mut candidates)
}

/// The cost of a sensor in a large document relative to a small one.
fn growth() -> [String; 3] {
    type Make = fn(&[Pair], Shape) -> Run;
    let makes: [(&str, Make); 3] = [
        ("merge", documents::merge),
        ("diff", documents::diff),
        ("acknowledge", |pairs, shape| {
            documents::acknowledged(pairs, shape, Times::LeftOut)
        }),
    ];
    let mut candidates: Vec<(String, MeasuredRun)> = Vec::new();
    for (name, make) in makes {
        for sensors in [50, 5_000] {
            // The same amount of work for both, so that runs are equally precise.
            let pairs = vec![documents::pair_of(sensors); 5_000 / sensors];
            let run = timed(5_000, make(&pairs, Shape::Small));
            candidates.push((format!("{name} {sensors}"), run));
        }
    }
    let best = best(ROUNDS, &mut candidates);
    makes.map(|(name, _)| ratio(&best, &format!("{name} 5000"), &format!("{name} 50")))
}

/// Allocations per record of a warm listener: for planning, or for everything.
fn allocations(shape: Shape, all: bool) -> String {
    let event = stream::event(RECORDS, shape, Order::Same, SEED);
    let ours = Ours::new(&rules(1_000, true), Sent::Diff, shape);
    let run = || match all {
        true => ours.handle(&event).sent,
        false => ours.listener.rehearse(&event).unwrap(),
    };
    assert_eq!(run(), RECORDS);
    let counted = allocation_counter::measure(|| assert_eq!(run(), RECORDS));
    assert!(all == (ours.taken_bytes() > 0));
    format!("{:.2}", counted.count_total as f64 / RECORDS as f64)
}

fn loading() -> f64 {
    let rules = rules(10_000, true);
    let mut best = f64::MAX;
    for _ in 0..11 {
        let start = Instant::now();
        let loaded = load(&rules, Sent::Diff);
        best = best.min(start.elapsed().as_secs_f64() * 1e3);
        assert_eq!(loaded.len(), 10_000);
    }
    best
}
