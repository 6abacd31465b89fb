//! Contacts noted once an hour, since no more than the hour is kept.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use antumbra_shadow::Timestamp;

use super::{Contacts, Source};
use crate::store::StoreError;

const HOUR_NANOSECONDS: i128 = 3_600_000_000_000;
/// Sources remembered. Beyond that all are forgotten, and noted once more.
const REMEMBERED: usize = 10_000;

/// Contacts that go to the store when this process notes a source for the first time in an hour, and
/// nowhere after that. A store that failed is asked again.
#[derive(Debug)]
pub struct OncePerHour<C> {
    contacts: C,
    noted: Mutex<HashMap<Source, i128>>,
}

impl<C: Contacts> OncePerHour<C> {
    /// Spares these contacts.
    pub fn new(contacts: C) -> OncePerHour<C> {
        OncePerHour {
            contacts,
            noted: Mutex::default(),
        }
    }

    fn known(&self, source: &Source, hour: i128) -> bool {
        let noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        noted.get(source).is_some_and(|noted| *noted >= hour)
    }

    fn remember(&self, source: &Source, hour: i128) {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        if noted.len() >= REMEMBERED && !noted.contains_key(source) {
            noted.clear();
        }
        let newest = noted.entry(source.clone()).or_insert(hour);
        *newest = hour.max(*newest);
    }
}

impl<C: Contacts> Contacts for OncePerHour<C> {
    async fn note(&self, source: &Source, at: Timestamp) -> Result<(), StoreError> {
        let hour = at.nanoseconds().div_euclid(HOUR_NANOSECONDS);
        if !self.known(source, hour) {
            self.contacts.note(source, at).await?;
            self.remember(source, hour);
        }
        Ok(())
    }
}
