//! The steps of a run, to find out why a seed failed.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::clock::VirtualClock;

/// Longest line that is kept.
const CHARACTERS: usize = 400;

/// The steps of a run. Clones are the same.
#[derive(Clone)]
pub(crate) struct Trace {
    clock: VirtualClock,
    written: Arc<Mutex<Written>>,
}

#[derive(Default)]
struct Written {
    /// `None` unless the steps are kept.
    lines: Option<Vec<String>>,
    steps: u64,
    /// Hash of all steps, to compare two runs.
    hash: u64,
}

impl Trace {
    pub(crate) fn new(clock: VirtualClock, kept: bool) -> Trace {
        let written = Written {
            lines: kept.then(Vec::new),
            ..Written::default()
        };
        Trace {
            clock,
            written: Arc::new(Mutex::new(written)),
        }
    }

    /// Records a step; its detail is formatted only if steps are kept.
    pub(crate) fn step(&self, kind: &str, detail: impl FnOnce() -> String) {
        let at = self.clock.elapsed();
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        written.steps += 1;
        let number = at.as_millis() as u64;
        let bytes = kind.bytes().chain(number.to_le_bytes());
        written.hash = bytes.fold(written.hash, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        if let Some(lines) = &mut written.lines {
            let line = format!("{} {kind} {}", seconds(at), detail());
            lines.push(line.chars().take(CHARACTERS).collect());
        }
    }

    /// Returns the number of steps and their hash.
    pub(crate) fn summary(&self) -> (u64, u64) {
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        (written.steps, written.hash)
    }

    /// Returns the lines, if they were kept.
    pub(crate) fn lines(&self) -> Vec<String> {
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        written.lines.clone().unwrap_or_default()
    }
}

fn seconds(at: Duration) -> String {
    format!("{:>9.3}", at.as_secs_f64())
}
