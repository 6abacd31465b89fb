//! Shadows in memory, for tests, tools and programs without a table.
//!
//! [`MemoryShadows`] obeys the laws of [`ShadowStore`], including DynamoDB's limits, and passes the same
//! contract suite. Its content ends with the process.

mod list;

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use antumbra_service::shadows::adapter::{check_delete, check_list, check_write};
use antumbra_service::shadows::{
    Cursor, Delete, DocumentSummary, ExpectedVersion, Layout, ListQuery, NewDocument, Page, Read,
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
        for (state, document, deleted) in slots {
            if !read.parts.has(state) {
                continue;
            }
            match contents.slots.get(&(read.shadow.clone(), state)) {
                Some(Slot::Stored(stored)) => *document = Some(stored.clone()),
                Some(Slot::Deleted { version, .. }) => *deleted = *version,
                None => {}
            }
        }
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
        query: &ListQuery,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<DocumentSummary>, StoreError> {
        check_list(query, limit)?;
        list::page(&self.contents().slots, self.layout, query, limit, cursor)
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
            let expected = match document {
                Some(document) => Some(document.expected),
                None => write.other_version,
            };
            let actual = self.version(&write.shadow, state);
            match expected {
                Some(expected) if expected != actual.unwrap_or(Version::NONE) => {
                    return Err(StoreError::Conflict { expected, actual });
                }
                _ => {}
            }
        }
        let [reported, desired] = documents.map(|(state, document)| {
            let document = document.as_ref()?;
            Some(self.put(write, state, document))
        });
        Ok(Written { reported, desired })
    }

    /// Stores a document. A new one continues from the version of a deleted one.
    fn put(&mut self, write: &Write, state: State, new: &NewDocument) -> Version {
        let key = (write.shadow.clone(), state);
        let remembered = match self.slots.get(&key) {
            Some(Slot::Deleted { version, at }) if at.after(VERSION_KEPT) > write.timestamp => {
                *version
            }
            _ => Version::NONE,
        };
        let before = match new.expected {
            Version::NONE => remembered.max(new.min_version),
            stored => stored,
        };
        let stored = StoredDocument {
            document: new.document.clone(),
            version: before.next(),
            timestamp: write.timestamp,
            zone: write.zone.clone(),
            client_token: write.client_token.clone(),
            times: new.times.clone(),
        };
        self.slots.insert(key, Slot::Stored(stored));
        before.next()
    }

    /// Checks every condition before anything changes.
    fn delete(&mut self, delete: &Delete, now: Timestamp) -> Result<(), StoreError> {
        let documents = [
            (State::Reported, delete.reported),
            (State::Desired, delete.desired),
        ];
        for (state, expected) in documents {
            let Some(ExpectedVersion::Version(expected)) = expected else {
                continue;
            };
            match self.version(&delete.shadow, state) {
                None => return Err(StoreError::NotFound),
                Some(actual) if actual == expected => {}
                actual => return Err(StoreError::Conflict { expected, actual }),
            }
        }
        for (state, _) in documents.into_iter().filter(|(_, part)| part.is_some()) {
            if let Some(version) = self.version(&delete.shadow, state) {
                let key = (delete.shadow.clone(), state);
                self.slots.insert(key, Slot::Deleted { version, at: now });
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

    /// The version of a stored document.
    fn version(&self, shadow: &ShadowId, state: State) -> Option<Version> {
        match self.slots.get(&(shadow.clone(), state))? {
            Slot::Stored(stored) => Some(stored.version),
            Slot::Deleted { .. } => None,
        }
    }
}
