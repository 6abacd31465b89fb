//! Records each source once an hour, since only the hour is stored.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use antumbra_shadow::Timestamp;

use super::{Source, SourceTracker};
use crate::store::StoreError;

const HOUR_NANOSECONDS: i128 = 3_600_000_000_000;
/// Maximum number of sources in memory. Beyond that all are dropped and recorded once more.
const MAX_SOURCES: usize = 10_000;

/// Passes the first message of a source in an hour to the store. After a failure the next message is passed too.
#[derive(Debug)]
pub struct HourlySourceTracker<C> {
    tracker: C,
    recorded: Mutex<HashMap<Source, i128>>,
}

impl<C: SourceTracker> HourlySourceTracker<C> {
    pub fn new(tracker: C) -> HourlySourceTracker<C> {
        HourlySourceTracker {
            tracker,
            recorded: Mutex::default(),
        }
    }

    /// Marks the source as recorded in this hour; returns `false` if it was.
    fn mark(&self, source: &Source, hour: i128) -> bool {
        let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        match recorded.get_mut(source) {
            Some(recorded) if *recorded >= hour => return false,
            Some(recorded) => *recorded = hour,
            None => {
                if recorded.len() >= MAX_SOURCES {
                    recorded.clear();
                }
                recorded.insert(source.clone(), hour);
            }
        }
        true
    }

    fn unmark(&self, source: &Source) {
        let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        recorded.remove(source);
    }
}

/// Drops the mark of a source that was not recorded, also if the call was cancelled.
struct Recording<'a, C: SourceTracker> {
    of: &'a HourlySourceTracker<C>,
    source: &'a Source,
    recorded: bool,
}

impl<C: SourceTracker> Drop for Recording<'_, C> {
    fn drop(&mut self) {
        if !self.recorded {
            self.of.unmark(self.source);
        }
    }
}

impl<C: SourceTracker> SourceTracker for HourlySourceTracker<C> {
    async fn touch(&self, source: &Source, at: Timestamp) -> Result<(), StoreError> {
        let hour = at.nanoseconds().div_euclid(HOUR_NANOSECONDS);
        // Marked before the call, so that concurrent messages do not call too.
        if !self.mark(source, hour) {
            return Ok(());
        }
        let mut recording = Recording {
            of: self,
            source,
            recorded: false,
        };
        self.tracker.touch(source, at).await?;
        recording.recorded = true;
        Ok(())
    }
}
