//! Contacts noted once an hour, since no more than the hour is kept.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use antumbra_shadow::Timestamp;

use super::{Source, SourceTracker};
use crate::store::StoreError;

const HOUR_NANOSECONDS: i128 = 3_600_000_000_000;
/// Sources remembered. Beyond that all are forgotten, and noted once more.
const REMEMBERED: usize = 10_000;

/// Contacts that go to the store when this process notes a source for the first time in an hour, and
/// nowhere after that. A store that failed is asked again.
#[derive(Debug)]
pub struct HourlySourceTracker<C> {
    contacts: C,
    noted: Mutex<HashMap<Source, i128>>,
}

impl<C: SourceTracker> HourlySourceTracker<C> {
    /// Spares these contacts.
    pub fn new(contacts: C) -> HourlySourceTracker<C> {
        HourlySourceTracker {
            contacts,
            noted: Mutex::default(),
        }
    }

    /// Remembers that the source is noted for this hour; `false` if it was.
    fn remember(&self, source: &Source, hour: i128) -> bool {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        match noted.get_mut(source) {
            Some(noted) if *noted >= hour => return false,
            Some(noted) => *noted = hour,
            None => {
                if noted.len() >= REMEMBERED {
                    noted.clear();
                }
                noted.insert(source.clone(), hour);
            }
        }
        true
    }

    fn forget(&self, source: &Source) {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        noted.remove(source);
    }
}

/// Forgets the source unless it was noted, also if nobody waits for that any more.
struct Noting<'a, C: SourceTracker> {
    of: &'a HourlySourceTracker<C>,
    source: &'a Source,
    noted: bool,
}

impl<C: SourceTracker> Drop for Noting<'_, C> {
    fn drop(&mut self) {
        if !self.noted {
            self.of.forget(self.source);
        }
    }
}

impl<C: SourceTracker> SourceTracker for HourlySourceTracker<C> {
    async fn touch(&self, source: &Source, at: Timestamp) -> Result<(), StoreError> {
        let hour = at.nanoseconds().div_euclid(HOUR_NANOSECONDS);
        // Remembered before the call, so that those who come meanwhile do not call too. Whoever called
        // and failed is the one to try again.
        if !self.remember(source, hour) {
            return Ok(());
        }
        let mut noting = Noting {
            of: self,
            source,
            noted: false,
        };
        self.contacts.touch(source, at).await?;
        noting.noted = true;
        Ok(())
    }
}
