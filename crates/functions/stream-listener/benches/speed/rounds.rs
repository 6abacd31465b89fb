//! Rounds in which everybody has a turn, so that neither the machine nor its mood counts.

use std::collections::BTreeMap;
use std::time::Instant;

/// One turn: how long it took, in microseconds per unit.
pub(crate) type Turn = Box<dyn FnMut() -> f64>;

/// The best turn of each, by name.
pub(crate) type Best = BTreeMap<String, f64>;

/// A turn that runs something and divides its time by so many units.
pub(crate) fn timed(units: usize, mut run: impl FnMut() + 'static) -> Turn {
    Box::new(move || {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64() * 1e6 / units as f64
    })
}

/// The minima over so many rounds.
pub(crate) fn best(rounds: usize, contestants: &mut [(String, Turn)]) -> Best {
    let mut best = Best::new();
    for _ in 0..rounds {
        for (name, turn) in &mut *contestants {
            let time = turn();
            let known = best.entry(name.clone()).or_insert(f64::MAX);
            *known = known.min(time);
        }
    }
    best
}
