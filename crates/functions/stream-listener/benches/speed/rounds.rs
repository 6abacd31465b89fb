//! Rounds in which every variant runs once, so that changes of the machine's load affect all alike.

use std::collections::BTreeMap;
use std::time::Instant;

/// One run: its time in microseconds per unit.
pub(crate) type MeasuredRun = Box<dyn FnMut() -> f64>;

/// The best run of each variant, by name.
pub(crate) type Best = BTreeMap<String, f64>;

/// A run whose time is divided by the number of units.
pub(crate) fn timed(units: usize, mut run: impl FnMut() + 'static) -> MeasuredRun {
    Box::new(move || {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64() * 1e6 / units as f64
    })
}

/// The minima over all rounds.
pub(crate) fn best(rounds: usize, candidates: &mut [(String, MeasuredRun)]) -> Best {
    let mut best = Best::new();
    for _ in 0..rounds {
        for (name, run) in &mut *candidates {
            let time = run();
            let known = best.entry(name.clone()).or_insert(f64::MAX);
            *known = known.min(time);
        }
    }
    best
}
