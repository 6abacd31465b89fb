//! The table: minima over rounds in which every variant has its turn.

use std::collections::BTreeMap;
use std::time::Instant;

use crate::generate::{self, Order, Shape};
use crate::roads::{load, rules};
use crate::variants::{NAMES, RECORDS, variant};

/// Rounds of which the best counts. More help on a busy machine.
const ROUNDS: usize = 41;

/// Microseconds a record, by variant.
type Times = BTreeMap<&'static str, f64>;

pub(crate) fn print() {
    let [small, large] = [Shape::Small, Shape::Large].map(measure);
    for (name, shape) in [("1k", Shape::Small), ("4k", Shape::Large)] {
        let bytes = generate::event(RECORDS, shape, Order::Same, 1).len() / RECORDS;
        println!("{name}: {bytes} bytes a record.");
    }
    println!("\n| what | 1k | 4k | gate | aim |\n|---|---|---|---|---|");
    let row = |what: &str, value: &dyn Fn(&Times) -> String, gate: &str, aim: &str| {
        let (small, large) = (value(&small), value(&large));
        println!("| {what} | {small} | {large} | {gate} | {aim} |");
    };
    let against = |a: &'static str, b: &'static str| {
        move |times: &Times| format!("{:.2}", times[a] / times[b])
    };
    row(
        "T: tokenise only, us a record",
        &|times| format!("{:.2}", times["T"]),
        "",
        "",
    );
    row("decode all images / T", &against("decode", "T"), "", "");
    row("listener, 10 rules / T", &against("10 rules", "T"), "", "");
    row(
        "listener, 1,000 rules / T",
        &against("1,000 rules", "T"),
        "<= 1.3",
        "0.8",
    );
    row(
        "listener, old and new sent too / T",
        &against("everything sent", "T"),
        "",
        "",
    );
    row(
        "a record nobody wants / T",
        &against("nobody", "T"),
        "<= 0.8",
        "0.4",
    );
    row(
        "10,000 rules / 10 rules",
        &against("10,000 rules", "10 rules"),
        "<= 1.15",
        "1.02",
    );
    row(
        "keys in another order / in the same",
        &against("another order", "1,000 rules"),
        "<= 2",
        "1.2",
    );
    row(
        "aws_lambda_events alone / T",
        &against("shelf events", "T"),
        "",
        "",
    );
    row(
        "listener of shelf crates / ours",
        &against("shelf", "10 rules"),
        ">= 10",
        "25",
    );
    row(
        "json-patch / our diff",
        &against("json-patch", "diff"),
        ">= 8",
        "20",
    );
    let milliseconds = loading();
    println!("| loading 10,000 registrations, ms | {milliseconds:.0} | | <= 150 | 20 |");
}

fn measure(shape: Shape) -> Times {
    let mut variants = NAMES.map(|name| (name, variant(name, shape)));
    let mut best = Times::new();
    for _ in 0..ROUNDS {
        for (name, run) in &mut variants {
            let start = Instant::now();
            run();
            let time = start.elapsed().as_secs_f64() * 1e6 / RECORDS as f64;
            let best = best.entry(name).or_insert(f64::MAX);
            *best = best.min(time);
        }
    }
    best
}

fn loading() -> f64 {
    let rules = rules(10_000, true);
    let mut best = f64::MAX;
    for _ in 0..5 {
        let start = Instant::now();
        let loaded = load(&rules);
        best = best.min(start.elapsed().as_secs_f64() * 1e3);
        assert_eq!(loaded.len(), 10_000);
    }
    best
}
