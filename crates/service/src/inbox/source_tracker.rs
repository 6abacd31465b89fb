//! Records each source once an hour, since only the hour is stored.
//!
//! The hours of a source begin at a minute and second of its own: if all began together, every message of the first seconds
//! would be recorded.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use antumbra_shadow::Timestamp;

use super::{Source, SourceTracker};
use crate::fnv::{fnv1a, shard};
use crate::store::StoreError;

const HOUR_NANOSECONDS: i128 = 3_600_000_000_000;
const SECOND_NANOSECONDS: i128 = 1_000_000_000;
/// Maximum number of sources in memory, some 20 bytes each. Beyond that all are dropped and recorded once more.
const MAX_SOURCES: usize = 500_000;

/// Returns the beginning of the hour, of those of a source, that a time is in.
pub fn contact_hour(source: &Source, at: Timestamp) -> Timestamp {
    let begins = i128::from(shard(source.as_str(), 3600)) * SECOND_NANOSECONDS;
    let past = (at.nanoseconds() - begins).rem_euclid(HOUR_NANOSECONDS);
    Timestamp::from_nanoseconds(at.nanoseconds() - past)
}

/// Passes the first message of a source in an hour to the store. After a failure the next message is passed too.
#[derive(Debug)]
pub struct HourlySourceTracker<C> {
    tracker: C,
    /// The second at which the recorded hour of a source began, by the hash of the source.
    recorded: Mutex<HashMap<u64, i64>>,
}

impl<C: SourceTracker> HourlySourceTracker<C> {
    pub fn new(tracker: C) -> HourlySourceTracker<C> {
        HourlySourceTracker {
            tracker,
            recorded: Mutex::default(),
        }
    }

    /// Marks the source as recorded in this hour; returns `false` if it was.
    fn mark(&self, source: u64, hour: i64) -> bool {
        let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        match recorded.get_mut(&source) {
            Some(recorded) if *recorded >= hour => return false,
            Some(recorded) => *recorded = hour,
            None => {
                if recorded.len() >= MAX_SOURCES {
                    recorded.clear();
                }
                recorded.insert(source, hour);
            }
        }
        true
    }

    fn unmark(&self, source: u64) {
        let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        recorded.remove(&source);
    }
}

/// Drops the mark of a source that was not recorded, also if the call was cancelled.
struct Recording<'a, C: SourceTracker> {
    of: &'a HourlySourceTracker<C>,
    source: u64,
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
        let hash = fnv1a(source.as_str().as_bytes());
        let hour = contact_hour(source, at).nanoseconds() / SECOND_NANOSECONDS;
        let hour = i64::try_from(hour).unwrap_or(i64::MAX);
        // Marked before the call, so that concurrent messages do not call too.
        if !self.mark(hash, hour) {
            return Ok(());
        }
        let mut recording = Recording {
            of: self,
            source: hash,
            recorded: false,
        };
        self.tracker.touch(source, at).await?;
        recording.recorded = true;
        Ok(())
    }
}
