//! Random choices, all determined by the seed.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A source of choices. Clones are the same source.
#[derive(Debug, Clone)]
pub(crate) struct Chance(Arc<Mutex<fastrand::Rng>>);

impl Chance {
    pub(crate) fn new(seed: u64) -> Chance {
        Chance(Arc::new(Mutex::new(fastrand::Rng::with_seed(seed))))
    }

    fn with<T>(&self, choose: impl FnOnce(&mut fastrand::Rng) -> T) -> T {
        choose(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn happens(&self, often: f64) -> bool {
        often > 0.0 && self.with(|random| random.f64()) < often
    }

    /// Draws a number from 0 to a bound, which is excluded.
    pub(crate) fn below(&self, bound: usize) -> usize {
        self.with(|random| random.usize(..bound.max(1)))
    }

    /// Draws a number between the bounds, both included.
    pub(crate) fn between(&self, low: u64, high: u64) -> u64 {
        self.with(|random| random.u64(low..=high.max(low)))
    }

    /// Draws a duration within a span, in milliseconds.
    pub(crate) fn within(&self, span: Duration) -> Duration {
        Duration::from_millis(self.between(0, span.as_millis() as u64))
    }

    pub(crate) fn pick<'a, T>(&self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    /// Another source, determined by the seed as well. This one stays as it is.
    pub(crate) fn aside(&self) -> Chance {
        Chance::new(!self.with(|random| random.clone().u64(..)))
    }

    /// Another source, determined by the seed as well.
    pub(crate) fn split(&self) -> Chance {
        Chance::new(self.with(|random| random.u64(..)))
    }
}
