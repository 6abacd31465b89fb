//! Progress of long operations, on standard error about once a second. Quick operations show none.

use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::output::{FAINT, styled};

const INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Progress {
    unit: &'static str,
    done: Cell<usize>,
    shown: Cell<Instant>,
}

impl Progress {
    /// Starts at 0 of the unit, a plural such as "deliveries queued".
    pub(crate) fn new(unit: &'static str) -> Progress {
        Progress {
            unit,
            done: Cell::new(0),
            shown: Cell::new(Instant::now()),
        }
    }

    pub(crate) fn add(&self, count: usize) {
        self.done.set(self.done.get() + count);
        if self.shown.get().elapsed() >= INTERVAL {
            self.shown.set(Instant::now());
            let line = format!("{} {} so far", self.done.get(), self.unit);
            anstream::eprintln!("{}", styled(FAINT, &line));
        }
    }
}
