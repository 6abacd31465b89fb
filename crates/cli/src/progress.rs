//! How far a long work is, said on standard error about once a second. What is quick says nothing.

use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::output::{FAINT, styled};

const EVERY: Duration = Duration::from_secs(1);

/// A work under way.
#[derive(Debug)]
pub(crate) struct Progress {
    what: &'static str,
    done: Cell<usize>,
    said: Cell<Instant>,
}

impl Progress {
    /// Nothing is done yet; `what` is what is counted.
    pub(crate) fn new(what: &'static str) -> Progress {
        Progress {
            what,
            done: Cell::new(0),
            said: Cell::new(Instant::now()),
        }
    }

    /// So many more are done.
    pub(crate) fn step(&self, count: usize) {
        self.done.set(self.done.get() + count);
        if self.said.get().elapsed() >= EVERY {
            self.said.set(Instant::now());
            let line = format!("{} {} so far", self.done.get(), self.what);
            anstream::eprintln!("{}", styled(FAINT, &line));
        }
    }
}
