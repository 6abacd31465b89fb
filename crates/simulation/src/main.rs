//! Runs seeds: `cargo run -p antumbra-simulation -- run 1000`, or one again with all its steps:
//! `cargo run -p antumbra-simulation -- replay 17`.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use antumbra_simulation::{Outcome, run};
use clap::{Parser, Subcommand};

/// The whole system with faults, by a seed.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs many seeds and prints the violated invariants.
    Run {
        /// Number of seeds.
        seeds: u64,
        /// The first.
        #[arg(long, default_value_t = 0)]
        from: u64,
        /// Number of threads.
        #[arg(long, default_value_t = 2)]
        threads: u64,
        /// Goes on after a seed failed.
        #[arg(long)]
        all: bool,
        /// Runs only seeds that aim at these moments, such as `Release` (`src/aim.rs`).
        #[arg(long)]
        aim: Option<String>,
    },
    /// Runs one seed and prints every step.
    Replay {
        /// The seed.
        seed: u64,
    },
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Replay { seed } => replay(seed),
        Command::Run {
            seeds,
            from,
            threads,
            all,
            aim,
        } => run_many(from, seeds, threads.max(1), all, aim),
    }
}

fn replay(seed: u64) -> ExitCode {
    let outcome = run(seed, true);
    for line in &outcome.trace {
        anstream::println!("{line}");
    }
    print_violations(seed, &outcome)
}

fn print_violations(seed: u64, outcome: &Outcome) -> ExitCode {
    for broken in &outcome.broken {
        anstream::println!("seed {seed}: {}: {}", broken.invariant, broken.seen);
    }
    if outcome.broken.is_empty() {
        ExitCode::SUCCESS
    } else {
        anstream::println!("again: cargo run -p antumbra-simulation -- replay {seed}");
        ExitCode::FAILURE
    }
}

fn run_many(from: u64, seeds: u64, threads: u64, all: bool, aim: Option<String>) -> ExitCode {
    let began = Instant::now();
    let next = AtomicU64::new(from);
    let failed: Mutex<BTreeMap<u64, Outcome>> = Mutex::default();
    let steps = AtomicU64::new(0);
    let lock = || failed.lock().unwrap_or_else(|poison| poison.into_inner());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= from + seeds || (!all && !lock().is_empty()) {
                        return;
                    }
                    if aim.is_some() && antumbra_simulation::aim(seed) != aim {
                        continue;
                    }
                    let outcome = run(seed, false);
                    steps.fetch_add(outcome.steps, Ordering::Relaxed);
                    if !outcome.broken.is_empty() {
                        lock().insert(seed, outcome);
                    }
                }
            });
        }
    });
    let failed = failed
        .into_inner()
        .unwrap_or_else(|poison| poison.into_inner());
    let mut by_invariant: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for (seed, outcome) in &failed {
        let invariants: BTreeSet<&str> = outcome.broken.iter().map(|one| one.invariant).collect();
        for invariant in invariants {
            by_invariant.entry(invariant).or_insert((*seed, 0)).1 += 1;
        }
    }
    if let Some((seed, outcome)) = failed.first_key_value() {
        print_violations(*seed, outcome);
    }
    for (invariant, (first, count)) in by_invariant {
        anstream::println!("{invariant}: first seed {first}, {count} seeds");
    }
    let steps = steps.into_inner();
    let took = began.elapsed().as_secs_f64();
    anstream::println!(
        "{seeds} seeds, {steps} steps, {} failed, {took:.1} s",
        failed.len()
    );
    if failed.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
