//! Seeds that every test run goes through.
#![allow(clippy::unwrap_used)]

use antumbra_simulation::run;

#[test]
fn the_promises_hold_for_some_seeds() {
    for seed in 0..20 {
        let outcome = run(seed, false);
        assert_eq!(outcome.broken, [], "cargo run -p antumbra-simulation -- replay {seed}");
    }
}

#[test]
fn a_seed_is_the_same_every_time() {
    for seed in 0..5 {
        let (one, other) = (run(seed, false), run(seed, false));
        assert_eq!((one.steps, one.hash), (other.steps, other.hash), "seed {seed}");
    }
}
