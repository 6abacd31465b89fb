//! Shadows in memory, for tests, tools and programs without a table.
//!
//! [`MemoryShadows`] obeys the laws of [`ShadowStore`], including DynamoDB's limits, and passes the same
//! contract suite. Its content ends with the process.

#![warn(missing_docs)]

mod list;

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use antumbra_service::access::IdRanges;
use antumbra_service::shadows::adapter::{check_delete, check_list, check_prefix, check_write};
use antumbra_service::shadows::{
    Cursor, Delete, DocumentSummary, ExpectedVersion, Layout, NewDocument, Page, Read,
    ReadConsistency, ShadowId, ShadowStore, Snapshot, StoreError, StoredDocument, VERSION_KEPT,
    Version, Write, Written,
};
use antumbra_shadow::{State, Timestamp};

/// Deletes between two removals of expired versions, at least.
const DELETES_BEFORE_EXPIRY: usize = 1024;

/// Place of one document.
#[derive(Debug)]
enum Slot {
    Stored(StoredDocument),
    /// The version of a deleted document, which a new one continues from.
    Deleted {
        version: Version,
        at: Timestamp,
        written: Timestamp,
        previous: Timestamp,
    },
}

/// Documents in the order of listings.
type Slots = BTreeMap<(ShadowId, State), Slot>;

#[derive(Debug, Default)]
struct Contents {
    slots: Slots,
    deletes: usize,
}

/// Shadows in memory. Clones share their content.
///
/// ```
/// use antumbra_memory::MemoryShadows;
/// use antumbra_service::shadows::{Layout, ShadowStore};
/// assert_eq!(MemoryShadows::default().layout(), Layout::Separate);
/// assert_eq!(MemoryShadows::new(Layout::Combined).layout(), Layout::Combined);
/// ```
#[derive(Debug, Clone, Default)]
pub struct MemoryShadows {
    layout: Layout,
    contents: Arc<RwLock<Contents>>,
}

impl MemoryShadows {
    /// An empty store of this layout.
    pub fn new(layout: Layout) -> MemoryShadows {
        MemoryShadows {
            layout,
            contents: Arc::default(),
        }
    }

    /// No change panics half-way, so the content behind a poisoned lock is complete.
    fn contents(&self) -> RwLockReadGuard<'_, Contents> {
        self.contents.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn contents_mut(&self) -> RwLockWriteGuard<'_, Contents> {
        let contents = self.contents.write();
        contents.unwrap_or_else(PoisonError::into_inner)
    }
}

impl ShadowStore for MemoryShadows {
    fn layout(&self) -> Layout {
        self.layout
    }

    async fn read(&self, read: &Read, _: ReadConsistency) -> Result<Snapshot, StoreError> {
        let contents = self.contents();
        let mut snapshot = Snapshot::default();
        let (mut deleted_at, mut written, mut previous) = (None, [None; 2], [None; 2]);
        let slots = [
            (
                State::Reported,
                &mut snapshot.reported,
                &mut snapshot.deleted.reported,
            ),
            (
                State::Desired,
                &mut snapshot.desired,
                &mut snapshot.deleted.desired,
            ),
        ];
        for (index, (state, document, deleted)) in slots.into_iter().enumerate() {
            if !read.parts.has(state) {
                continue;
            }
            match contents.slots.get(&(read.shadow.clone(), state)) {
                Some(Slot::Stored(stored)) => *document = Some(stored.clone()),
                Some(Slot::Deleted {
                    version,
                    at,
                    written: time,
                    previous: before,
                }) => {
                    *deleted = *version;
                    deleted_at = deleted_at.max(Some(*at));
                    (written[index], previous[index]) = (Some(*time), Some(*before));
                }
                None => {}
            }
        }
        snapshot.deleted.at = deleted_at;
        snapshot.deleted.written = written;
        snapshot.deleted.previous = previous;
        (snapshot != Snapshot::default())
            .then_some(snapshot)
            .ok_or(StoreError::NotFound)
    }

    async fn write(&self, write: &Write) -> Result<Written, StoreError> {
        check_write(write, self.layout)?;
        self.contents_mut().write(write)
    }

    async fn delete(&self, delete: &Delete, now: Timestamp) -> Result<(), StoreError> {
        check_delete(delete, self.layout)?;
        self.contents_mut().delete(delete, now)
    }

    async fn list(
        &self,
        id: &str,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<DocumentSummary>, StoreError> {
        check_list(id, limit)?;
        list::page(&self.contents().slots, self.layout, id, limit, cursor)
    }

    async fn list_by_prefix(
        &self,
        prefix: &str,
        within: &IdRanges,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<ShadowId>, StoreError> {
        check_prefix(prefix, limit)?;
        list::by_prefix(&self.contents().slots, prefix, within, limit, cursor)
    }
}

impl Contents {
    /// Checks every condition before anything changes.
    fn write(&mut self, write: &Write) -> Result<Written, StoreError> {
        let documents = [
            (State::Reported, &write.reported),
            (State::Desired, &write.desired),
        ];
        for (state, document) in documents {
            let (expected, times) = match document {
                Some(document) => (Some(document.expected), Some(document.expected_times)),
                None => (write.other_version, None),
            };
            let stored = self.stored(&write.shadow, state);
            let actual = stored.map(|stored| stored.version);
            let is_changed = !has_times(stored, times);
            match expected {
                Some(expected) if expected != actual.unwrap_or(Version::NONE) || is_changed => {
                    return Err(StoreError::Conflict { expected, actual });
                }
                _ => {}
            }
            if document.is_some() && self.deleted(&write.shadow, state) >= Some(write.timestamp) {
                let expected = Version::NONE;
                return Err(StoreError::Conflict { expected, actual });
            }
        }
        let [reported, desired] = documents.map(|(state, document)| {
            let document = document.as_ref()?;
            self.put(write, state, document)
        });
        Ok(Written { reported, desired })
    }

    /// Stores a document, and returns its version if it is a new one. A created one continues from the version of a
    /// deleted one.
    fn put(&mut self, write: &Write, state: State, new: &NewDocument) -> Option<Version> {
        let key = (write.shadow.clone(), state);
        let (held, remembered) = match self.slots.get(&key) {
            Some(Slot::Stored(stored)) => (Some(stored), Version::NONE),
            Some(Slot::Deleted { version, at, .. }) if at.after(VERSION_KEPT) > write.timestamp => {
                (None, *version)
            }
            _ => (None, Version::NONE),
        };
        let before = match new.expected {
            Version::NONE => remembered.max(new.min_version),
            stored => stored,
        };
        let stored = new.stored(write, before.next(), held);
        self.slots.insert(key, Slot::Stored(stored));
        (!new.times_only).then_some(before.next())
    }

    /// Checks every condition before anything changes.
    fn delete(&mut self, delete: &Delete, now: Timestamp) -> Result<(), StoreError> {
        let documents = [
            (State::Reported, delete.reported),
            (State::Desired, delete.desired),
        ];
        for (state, expected) in documents {
            let remains = expected.is_none();
            let (expected, times) = match expected.map(ExpectedVersion::parts) {
                Some(parts) => parts,
                None => (delete.other_version, None),
            };
            let Some(expected) = expected else {
                continue;
            };
            match self.stored(&delete.shadow, state) {
                None if remains && expected == Version::NONE => {}
                None if !remains => return Err(StoreError::NotFound),
                Some(stored) if stored.version == expected && has_times(Some(stored), times) => {}
                stored => {
                    let actual = stored.map(|stored| stored.version);
                    return Err(StoreError::Conflict { expected, actual });
                }
            }
        }
        for (state, _) in documents.into_iter().filter(|(_, part)| part.is_some()) {
            if let Some(stored) = self.stored(&delete.shadow, state) {
                let deleted = Slot::Deleted {
                    version: stored.version,
                    at: delete.time.unwrap_or(now),
                    written: now,
                    previous: stored.timestamp,
                };
                self.slots.insert((delete.shadow.clone(), state), deleted);
                self.deletes += 1;
            }
        }
        self.expire(now);
        Ok(())
    }

    /// Removes expired versions, after as many deletes as there are documents.
    fn expire(&mut self, now: Timestamp) {
        if self.deletes > self.slots.len().max(DELETES_BEFORE_EXPIRY) {
            self.deletes = 0;
            self.slots.retain(|_, slot| match slot {
                Slot::Stored(_) => true,
                Slot::Deleted { at, .. } => at.after(VERSION_KEPT) > now,
            });
        }
    }

    fn stored(&self, shadow: &ShadowId, state: State) -> Option<&StoredDocument> {
        match self.slots.get(&(shadow.clone(), state))? {
            Slot::Stored(stored) => Some(stored),
            Slot::Deleted { .. } => None,
        }
    }

    /// Returns the time of the write that deleted a document.
    fn deleted(&self, shadow: &ShadowId, state: State) -> Option<Timestamp> {
        match self.slots.get(&(shadow.clone(), state))? {
            Slot::Stored(_) => None,
            Slot::Deleted { written, .. } => Some(*written),
        }
    }
}

/// Returns whether as many writes of times as expected were made since the document was written.
fn has_times(stored: Option<&StoredDocument>, expected: Option<i64>) -> bool {
    let actual = stored.map_or(0, |stored| stored.times_version);
    expected.is_none_or(|expected| expected == actual)
}
