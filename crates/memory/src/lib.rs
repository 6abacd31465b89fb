//! Shadows kept in memory: [`MemoryShadows`].
//!
//! For tests, for tools, and for whoever wants shadows without a table. It keeps the laws of
//! [`ShadowStore`], the limits of DynamoDB among them, and passes the same contract suite. Nothing
//! outlives the process.

mod change;
mod list;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use antumbra_service::shadows::adapter::{check_delete, check_list, check_write};
use antumbra_service::shadows::{
    Cursor, Delete, DeletedVersions, DocumentSummary, Layout, ListQuery, Page, Read,
    ReadConsistency, ShadowId, ShadowStore, Snapshot, StoreError, Version, Write, Written,
};
use antumbra_shadow::{State, Timestamp};

/// What is kept.
#[derive(Debug, Default)]
struct Kept {
    /// In order, so that a listing can go on where it stopped. No snapshot in it is empty or speaks of what
    /// is gone.
    shadows: BTreeMap<ShadowId, Snapshot>,
    /// The versions that deleted documents had, and when they were deleted.
    gone: HashMap<(ShadowId, State), (Version, Timestamp)>,
    /// How many of those there may be before the old ones are looked for.
    gone_limit: usize,
}

/// Shadows in memory. Clones share what is kept.
///
/// ```
/// use antumbra_memory::MemoryShadows;
/// use antumbra_service::shadows::{Layout, Persistence};
/// assert_eq!(MemoryShadows::default().layout(), Layout::Separate);
/// assert_eq!(MemoryShadows::new(Layout::Combined).layout(), Layout::Combined);
/// ```
#[derive(Debug, Clone, Default)]
pub struct MemoryShadows {
    layout: Layout,
    kept: Arc<RwLock<Kept>>,
}

impl MemoryShadows {
    /// An empty store of this layout.
    pub fn new(layout: Layout) -> MemoryShadows {
        MemoryShadows {
            layout,
            kept: Arc::default(),
        }
    }

    /// Nothing panics while it holds the lock halfway through a change, so a poisoned one is whole.
    fn kept(&self) -> RwLockReadGuard<'_, Kept> {
        self.kept.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn kept_mut(&self) -> RwLockWriteGuard<'_, Kept> {
        self.kept.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ShadowStore for MemoryShadows {
    fn layout(&self) -> Layout {
        self.layout
    }

    async fn read(&self, read: &Read, _: ReadConsistency) -> Result<Snapshot, StoreError> {
        let found = asked_for(&self.kept(), read);
        (found != Snapshot::default())
            .then_some(found)
            .ok_or(StoreError::NotFound)
    }

    async fn write(&self, write: &Write) -> Result<Written, StoreError> {
        check_write(write, self.layout)?;
        change::write(&mut self.kept_mut(), write)
    }

    async fn delete(&self, delete: &Delete, now: Timestamp) -> Result<(), StoreError> {
        check_delete(delete, self.layout)?;
        change::delete(&mut self.kept_mut(), delete, now)
    }

    async fn list(
        &self,
        query: &ListQuery,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<DocumentSummary>, StoreError> {
        check_list(query, limit)?;
        list::page(&self.kept().shadows, self.layout, query, limit, cursor)
    }
}

fn asked_for(kept: &Kept, read: &Read) -> Snapshot {
    let stored = kept.shadows.get(&read.shadow);
    let part = |state: State| {
        let held = match state {
            State::Reported => stored.and_then(|snapshot| snapshot.reported.clone()),
            State::Desired => stored.and_then(|snapshot| snapshot.desired.clone()),
        };
        let gone = kept.gone.get(&(read.shadow.clone(), state));
        let gone = gone.map_or(Version::NONE, |(version, _)| *version);
        if read.parts.has(state) {
            (held, gone)
        } else {
            (None, Version::NONE)
        }
    };
    let (reported, gone_reported) = part(State::Reported);
    let (desired, gone_desired) = part(State::Desired);
    Snapshot {
        reported,
        desired,
        deleted: DeletedVersions {
            reported: gone_reported,
            desired: gone_desired,
        },
    }
}
