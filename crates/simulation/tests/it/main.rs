//! Runs some seeds, and checks that every mutant can be inserted.
#![allow(clippy::unwrap_used)]

#[path = "../../mutants/plant.rs"]
#[allow(dead_code)]
mod plant;

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use antumbra_simulation::run;

/// An unoptimised build runs these within seconds; the binary runs thousands.
const SEEDS: u64 = 12;
/// Later seeds that catch mutants which the first ones miss (see README.md).
const CATCHING_SEEDS: [u64; 7] = [40, 43, 61, 161, 339, 355, 1095];

#[test]
fn the_invariants_hold() {
    let seeds: Vec<u64> = (0..SEEDS).chain(CATCHING_SEEDS).collect();
    let next = AtomicUsize::new(0);
    let runs = || {
        while let Some(&seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)) {
            let violations = run(seed, false).broken;
            let replay = format!("cargo run -p antumbra-simulation -- replay {seed}");
            assert_eq!(violations, [], "{replay}");
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(runs);
        }
    });
}

#[test]
fn a_seed_determines_the_run() {
    for seed in [1, 2, 7] {
        let (one, other) = std::thread::scope(|scope| {
            let one = scope.spawn(move || run(seed, false));
            let other = run(seed, false);
            (one.join(), other)
        });
        let one = one.unwrap();
        let (one, other) = ((one.steps, one.hash), (other.steps, other.hash));
        assert_eq!(one, other, "seed {seed}");
    }
}

/// If this fails, the quoted lines of a mutant have changed: update its entry in `mutants/`.
#[test]
fn every_mutant_can_be_inserted() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let files = plant::planted(&crates).unwrap();
    let planted = |number: usize| {
        let switch = format!("::mutant({number})");
        files.values().any(|text| text.contains(&switch))
    };
    assert!((1..=plant::mutants().len()).all(planted));
}
