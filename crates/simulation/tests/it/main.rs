//! Seeds that every test run goes through.
#![allow(clippy::unwrap_used)]

#[path = "../../mutants/plant.rs"]
#[allow(dead_code)]
mod plant;

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use antumbra_simulation::run;

/// As many as an unoptimised build goes through in some seconds; the binary runs thousands.
const SEEDS: u64 = 24;
/// Later seeds that catch mutants which the first ones miss (see README.md).
const CATCHING_SEEDS: [u64; 16] = [
    28, 31, 40, 41, 44, 51, 55, 57, 76, 134, 142, 226, 263, 298, 354, 641,
];

#[test]
fn the_promises_hold() {
    let seeds: Vec<u64> = (0..SEEDS).chain(CATCHING_SEEDS).collect();
    let next = AtomicUsize::new(0);
    let runs = || {
        while let Some(&seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)) {
            let broken = run(seed, false).broken;
            let again = format!("cargo run -p antumbra-simulation -- replay {seed}");
            assert_eq!(broken, [], "{again}");
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(runs);
        }
    });
}

#[test]
fn a_seed_is_the_same_every_time() {
    for seed in [1, 2, 7] {
        let (one, other) = (run(seed, false), run(seed, false));
        let (one, other) = ((one.steps, one.hash), (other.steps, other.hash));
        assert_eq!(one, other, "seed {seed}");
    }
}

/// A mutant whose lines have changed is planted nowhere: its file says what to look for now.
#[test]
fn every_mutant_finds_its_place() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let files = plant::planted(&crates).unwrap();
    let planted = |number: usize| {
        let switch = format!("::mutant({number})");
        files.values().any(|text| text.contains(&switch))
    };
    assert!((1..=plant::mutants().len()).all(planted));
}
