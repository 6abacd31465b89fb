//! Device shadows: report, desire, read, delete, list.
//!
//! [`Shadows`] is the SDK. It reads, merges and writes conditionally on the version; where another
//! writer was faster it reads and merges again. Nothing is decided by the store, and nothing is
//! merged outside `antumbra_shadow`.

pub mod adapter;
mod engine;
pub mod id;
mod plan;
mod store;
mod update;

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use antumbra_shadow::{Document, DocumentError, Model, Timestamp, delta};
use serde::Serialize;
use tokio::sync::Mutex;

use crate::access::IdRanges;
use crate::backoff;
use crate::clock::{Clock, SystemClock};
use crate::paging::page_limit;
use crate::store::ErrorClass;

pub use crate::paging::{Cursor, Page};
pub use crate::store::{StoreError, Version};
pub use antumbra_shadow::State;
pub use engine::UpdateResult;
pub use id::{ClientToken, ShadowId, Zone};
pub use store::{
    Delete, DeletedVersions, DocumentSet, DocumentSummary, ExpectedVersion, Layout, NewDocument,
    Read, ReadConsistency, ShadowStore, Snapshot, StoredDocument, VERSION_KEPT, Write, Written,
};
pub use update::{DEFAULT_RETRIES, DEFAULT_RETRY_TIME, DesiredMode, HeldValues, Update};

/// Error of a request about shadows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum ShadowError {
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// An id, name, token or zone is invalid.
    #[error(transparent)]
    Id(#[from] crate::text::InvalidText),
    /// The store rejected the request or failed.
    #[error("{error} ({attempts} {})", if *attempts == 1 { "attempt" } else { "attempts" })]
    Store {
        /// Error of the last attempt.
        error: StoreError,
        attempts: u32,
    },
}

#[allow(missing_docs)]
impl ShadowError {
    fn store(error: StoreError) -> ShadowError {
        ShadowError::Store { error, attempts: 1 }
    }

    pub fn class(&self) -> ErrorClass {
        match self {
            ShadowError::Document(DocumentError::TooLong { .. }) => ErrorClass::TooLarge,
            ShadowError::Document(_) | ShadowError::Id(_) => ErrorClass::Invalid,
            ShadowError::Store { error, .. } => error.class(),
        }
    }

    pub fn is_not_found(&self) -> bool {
        self.class() == ErrorClass::NotFound
    }

    pub fn is_conflict(&self) -> bool {
        self.class() == ErrorClass::Conflict
    }
}

/// A shadow as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shadow {
    /// Reported document, if requested and stored.
    pub reported: Option<StoredDocument>,
    /// Desired document, if requested and stored.
    pub desired: Option<StoredDocument>,
    /// Difference of desired and reported, if both were requested.
    pub delta: Option<Document>,
    /// Version of the shadow if both documents were requested; otherwise of the requested one.
    pub version: Version,
}

/// Locks for updates of a process.
const LOCKS: usize = 64;

/// The shadows of a fleet.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// use antumbra_memory::MemoryShadows;
/// use antumbra_service::shadows::{DocumentSet, ShadowId, Shadows, State, Version};
/// use serde_json::json;
///
/// let shadows = Shadows::new(MemoryShadows::default());
/// let lamp = ShadowId::new("lamp-7")?;
/// shadows.desire(&lamp, &json!({"led": "on"})).await?;
/// let updated = shadows.report(&lamp, &json!({"led": "on", "watt": 4.5})).await?;
/// assert_eq!(updated.version(State::Reported), Version(1));
/// assert_eq!(updated.acknowledged.len(), 1);
///
/// let shadow = shadows.read(&lamp, DocumentSet::Both).await?;
/// assert!(shadow.delta.unwrap().is_empty());
/// # Ok::<(), antumbra_service::shadows::ShadowError>(())
/// # }).unwrap();
/// ```
pub struct Shadows<P> {
    store: P,
    clock: Arc<dyn Clock>,
    model: Model,
    /// Varies the jitter from call to call.
    calls: AtomicU64,
    /// Held during an update of a shadow, by the hash of its id. Updates of one process need not conflict.
    locks: [Mutex<()>; LOCKS],
}

impl<P: ShadowStore> Shadows<P> {
    /// Creates the SDK with the system clock and the default model.
    pub fn new(store: P) -> Shadows<P> {
        Shadows::with_clock(store, Arc::new(SystemClock))
    }

    /// Creates the SDK with another clock.
    pub fn with_clock(store: P, clock: Arc<dyn Clock>) -> Shadows<P> {
        Shadows {
            store,
            clock,
            model: Model::default(),
            calls: AtomicU64::new(0),
            locks: [const { Mutex::const_new(()) }; LOCKS],
        }
    }

    /// Sets the model for all documents whose update names none.
    #[must_use]
    pub fn with_model(mut self, model: Model) -> Shadows<P> {
        self.model = model;
        self
    }

    /// Returns the store.
    pub fn store(&self) -> &P {
        &self.store
    }

    /// Returns the model for all documents whose update names none.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Merges the state that a device sends into its reported document, with the default options. See
    /// [`Shadows`] for an example.
    pub async fn report<T: Serialize + Sync + ?Sized>(
        &self,
        shadow: &ShadowId,
        value: &T,
    ) -> Result<UpdateResult, ShadowError> {
        self.update(Update::report(shadow.clone(), Document::from_value(value)?))
            .await
    }

    /// Merges the state requested of a device into its desired document, with the default options. See
    /// [`Shadows`] for an example.
    pub async fn desire<T: Serialize + Sync + ?Sized>(
        &self,
        shadow: &ShadowId,
        value: &T,
    ) -> Result<UpdateResult, ShadowError> {
        self.update(Update::desire(shadow.clone(), Document::from_value(value)?))
            .await
    }

    /// Carries out one update.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
    /// # use antumbra_memory::MemoryShadows;
    /// # use antumbra_service::shadows::{ShadowId, Shadows, Update, Version};
    /// # use antumbra_shadow::Document;
    /// let shadows = Shadows::new(MemoryShadows::default());
    /// let update = Update::report(ShadowId::new("lamp-7")?, Document::parse(r#"{"led":"on"}"#)?);
    /// assert!(shadows.update(update.clone()).await?.written);
    /// assert!(!shadows.update(update.clone()).await?.written, "nothing new, nothing written");
    /// assert!(shadows.update(update.expected(Version(7))).await.unwrap_err().is_conflict());
    /// # Ok::<(), antumbra_service::shadows::ShadowError>(())
    /// # }).unwrap();
    /// ```
    pub async fn update(&self, update: Update) -> Result<UpdateResult, ShadowError> {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(&update.shadow);
        let _lock = self.locks[hash as usize % LOCKS].lock().await;
        self.engine().update(&update).await
    }

    /// Carries out many updates: one batched read, parallel writes, and one result each in the given order.
    /// Updates of the same shadow are applied in that order.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
    /// # use antumbra_memory::MemoryShadows;
    /// # use antumbra_service::shadows::{ShadowId, Shadows, State, Update, Version};
    /// # use antumbra_shadow::Document;
    /// # let shadows = Shadows::new(MemoryShadows::default());
    /// let lamp = ShadowId::new("lamp-7")?;
    /// let updates = ["on", "off"].map(|led| {
    ///     Update::report(lamp.clone(), Document::parse(&format!(r#"{{"led":"{led}"}}"#)).unwrap())
    /// });
    /// let results = shadows.update_many(&updates).await;
    /// assert_eq!(results[1].as_ref().unwrap().version(State::Reported), Version(2));
    /// # Ok::<(), antumbra_service::shadows::ShadowError>(())
    /// # }).unwrap();
    /// ```
    pub async fn update_many(&self, updates: &[Update]) -> Vec<Result<UpdateResult, ShadowError>> {
        self.engine().update_many(updates).await
    }

    /// Returns whether an update would write, without writing.
    pub async fn would_write(&self, update: &Update) -> Result<bool, ShadowError> {
        let planned = self.engine().would_write(update).await;
        planned.map_err(ShadowError::store)
    }

    fn engine(&self) -> engine::Engine<'_, P> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        engine::Engine {
            store: &self.store,
            clock: &self.clock,
            model: &self.model,
            seed: (self.clock.now().nanoseconds() as u64) ^ call.rotate_left(32),
        }
    }

    /// Reads one shadow as it is at one instant.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
    /// # use antumbra_memory::MemoryShadows;
    /// # use antumbra_service::shadows::{DocumentSet, ShadowId, Shadows};
    /// #[derive(serde::Serialize, serde::Deserialize)]
    /// struct Lamp { led: String }
    ///
    /// let shadows = Shadows::new(MemoryShadows::default());
    /// let lamp = ShadowId::new("lamp-7")?;
    /// shadows.report(&lamp, &Lamp { led: "on".into() }).await?;
    /// let read: Lamp = shadows.read(&lamp, DocumentSet::Reported).await?.reported.unwrap().document.to_value().unwrap();
    /// assert_eq!(read.led, "on");
    /// assert!(shadows.read(&ShadowId::new("lamp-8")?, DocumentSet::Both).await.unwrap_err().is_not_found());
    /// # Ok::<(), antumbra_service::shadows::ShadowError>(())
    /// # }).unwrap();
    /// ```
    pub async fn read(&self, shadow: &ShadowId, parts: DocumentSet) -> Result<Shadow, ShadowError> {
        let read = Read {
            shadow: shadow.clone(),
            parts,
        };
        let found = self.store.read(&read, ReadConsistency::Snapshot).await;
        self.shadow(parts, found)
    }

    /// Reads many shadows. Returns one result each, in the given order.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
    /// # use antumbra_memory::MemoryShadows;
    /// # use antumbra_service::shadows::{DocumentSet, Read, ShadowId, Shadows};
    /// # let shadows = Shadows::new(MemoryShadows::default());
    /// let reads = [Read { shadow: ShadowId::new("lamp-7")?, parts: DocumentSet::Both }];
    /// assert!(shadows.read_many(&reads).await[0].is_err());
    /// # Ok::<(), antumbra_service::shadows::ShadowError>(())
    /// # }).unwrap();
    /// ```
    pub async fn read_many(&self, reads: &[Read]) -> Vec<Result<Shadow, ShadowError>> {
        let found = self.store.read_many(reads, ReadConsistency::Snapshot).await;
        reads
            .iter()
            .zip(found)
            .map(|(read, found)| self.shadow(read.parts, found))
            .collect()
    }

    fn shadow(
        &self,
        parts: DocumentSet,
        found: Result<Snapshot, StoreError>,
    ) -> Result<Shadow, ShadowError> {
        let snapshot = found.map_err(ShadowError::store)?;
        if snapshot.is_absent() {
            return Err(ShadowError::store(StoreError::NotFound));
        }
        let version = snapshot.version(self.store.layout());
        let Snapshot {
            reported, desired, ..
        } = snapshot;
        let document = |held: &Option<StoredDocument>| {
            held.as_ref()
                .map(|held| held.document.clone())
                .unwrap_or_default()
        };
        let delta = (parts == DocumentSet::Both)
            .then(|| delta(&document(&desired), &document(&reported), &self.model));
        Ok(Shadow {
            reported,
            desired,
            delta,
            version,
        })
    }

    /// Deletes a shadow's documents, or one of them.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
    /// # use antumbra_memory::MemoryShadows;
    /// # use antumbra_service::shadows::{Delete, DocumentSet, ExpectedVersion, ShadowId, Shadows, Version};
    /// # let shadows = Shadows::new(MemoryShadows::default());
    /// let lamp = ShadowId::new("lamp-7")?;
    /// shadows.report(&lamp, &serde_json::json!({"led": "on"})).await?;
    /// let at = |version| Delete { shadow: lamp.clone(), reported: Some(ExpectedVersion::Version(version)), desired: None, other_version: None, time: None };
    /// assert!(shadows.delete(at(Version(9))).await.unwrap_err().is_conflict());
    /// shadows.delete(at(Version(1))).await?;
    /// assert!(shadows.read(&lamp, DocumentSet::Both).await.unwrap_err().is_not_found());
    /// # Ok::<(), antumbra_service::shadows::ShadowError>(())
    /// # }).unwrap();
    /// ```
    pub async fn delete(&self, delete: Delete) -> Result<(), ShadowError> {
        self.delete_timed(delete).await.map(drop)
    }

    /// Deletes like [`Shadows::delete`]. Returns the time of the delete; if nothing was stored, that of the last delete, or
    /// `None` if it is not known any more.
    pub async fn delete_timed(&self, delete: Delete) -> Result<Option<Timestamp>, ShadowError> {
        let layout = self.store.layout();
        adapter::check_delete(&delete, layout).map_err(ShadowError::store)?;
        let read = Read {
            shadow: delete.shadow.clone(),
            parts: match (delete.reported, delete.desired) {
                (Some(_), None) => DocumentSet::Reported,
                (None, Some(_)) => DocumentSet::Desired,
                _ => DocumentSet::Both,
            },
        };
        let deadline = self.clock.now().after(DEFAULT_RETRY_TIME);
        for attempts in 1.. {
            let stored = match self.store.read(&read, ReadConsistency::Strong).await {
                Err(StoreError::NotFound) => Snapshot::default(),
                stored => stored.map_err(ShadowError::store)?,
            };
            // A delete of any version is conditional too, so that its time is later than that of the last write.
            let part = |expected, held: &Option<StoredDocument>| match (expected, held) {
                (Some(ExpectedVersion::Any), held) => held.as_ref().map(ExpectedVersion::unchanged),
                (expected, _) => expected,
            };
            let conditional = Delete {
                reported: part(delete.reported, &stored.reported),
                desired: part(delete.desired, &stored.desired),
                ..delete.clone()
            };
            if conditional.reported.is_none() && conditional.desired.is_none() {
                return Ok(stored.deleted.written.into_iter().flatten().max());
            }
            let any = conditional != delete;
            let now = self.clock.now();
            let time = stored.next_time(now);
            let deleted = self.store.delete(&conditional, time).await;
            let delay = backoff::delay(attempts, fastrand::f64());
            match deleted {
                Err(StoreError::Conflict { .. } | StoreError::NotFound)
                    if any && now.after(delay) < deadline =>
                {
                    self.clock.sleep(delay).await;
                }
                Ok(()) => return Ok(Some(time)),
                Err(error) => return Err(ShadowError::Store { error, attempts }),
            }
        }
        Ok(None)
    }

    /// Deletes both documents of a shadow, and returns its version. With an expected version, the shadow as a whole
    /// must have it, as [`Snapshot::version`] computes it. With a time, a document that holds a later one stays.
    /// Without an expected version, the delete is retried until the deadline while other writers are faster.
    pub async fn delete_shadow(
        &self,
        shadow: &ShadowId,
        expected: Option<Version>,
        time: Option<Timestamp>,
        deadline: Option<Timestamp>,
    ) -> Result<Version, ShadowError> {
        let deadline = deadline.unwrap_or_else(|| self.clock.now().after(DEFAULT_RETRY_TIME));
        for attempts in 1.. {
            let stored = self.read(shadow, DocumentSet::Both).await?;
            if let Some(expected) = expected
                && expected != stored.version
            {
                let actual = Some(stored.version);
                return Err(ShadowError::store(StoreError::Conflict {
                    expected,
                    actual,
                }));
            }
            let part = |stored: &Option<StoredDocument>| {
                let stored = stored.as_ref()?;
                let is_later = stored.leaf_times().newest() > time;
                (time.is_none() || !is_later).then(|| ExpectedVersion::unchanged(stored))
            };
            let (reported, desired) = (part(&stored.reported), part(&stored.desired));
            let combined = self.store.layout() == Layout::Combined;
            let remaining = match (reported, desired) {
                (None, None) => return Ok(stored.version),
                (Some(_), Some(_)) => None,
                _ if combined => return Ok(stored.version),
                (Some(_), None) => Some(&stored.desired),
                (None, Some(_)) => Some(&stored.reported),
            };
            let version_of = |stored: &Option<StoredDocument>| {
                let stored = stored.as_ref();
                stored.map_or(Version::NONE, |stored| stored.version)
            };
            let delete = Delete {
                shadow: shadow.clone(),
                reported,
                desired,
                other_version: remaining.filter(|_| expected.is_some()).map(version_of),
                time,
            };
            let now = self.clock.now();
            let read = Snapshot {
                reported: stored.reported,
                desired: stored.desired,
                deleted: DeletedVersions::default(),
            };
            let deleted = self.store.delete(&delete, read.next_time(now)).await;
            let delay = backoff::delay(attempts, fastrand::f64());
            match deleted {
                Ok(()) => return Ok(stored.version),
                Err(StoreError::Conflict { .. } | StoreError::NotFound)
                    if now.after(delay) < deadline =>
                {
                    self.clock.sleep(delay).await;
                }
                Err(error) => return Err(ShadowError::Store { error, attempts }),
            }
        }
        Err(ShadowError::store(StoreError::NotFound))
    }

    /// Lists the documents of a device by its id, a page at a time.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
    /// # use antumbra_memory::MemoryShadows;
    /// # use antumbra_service::shadows::{ShadowId, Shadows};
    /// # let shadows = Shadows::new(MemoryShadows::default());
    /// shadows.report(&ShadowId::named("lamp-7", "light")?, &serde_json::json!({"led": "on"})).await?;
    /// let page = shadows.list("lamp-7", 100, None).await?;
    /// assert_eq!(page.rows[0].shadow.name(), "light");
    /// assert!(page.next.is_none());
    /// # Ok::<(), antumbra_service::shadows::ShadowError>(())
    /// # }).unwrap();
    /// ```
    pub async fn list(
        &self,
        id: &str,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<DocumentSummary>, ShadowError> {
        page_limit(limit).map_err(ShadowError::store)?;
        self.store
            .list(id, limit, cursor)
            .await
            .map_err(ShadowError::store)
    }

    /// Lists the shadows whose id starts with a text, a page at a time; with an empty text all of them. Reads an index,
    /// not the shadows.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
    /// # use antumbra_memory::MemoryShadows;
    /// # use antumbra_service::shadows::{ShadowId, Shadows};
    /// # let shadows = Shadows::new(MemoryShadows::default());
    /// for id in ["lamp-7", "lamp-8", "fan-1"] {
    ///     shadows.report(&ShadowId::new(id)?, &serde_json::json!({"led": "on"})).await?;
    /// }
    /// let page = shadows.list_by_prefix("lamp-", 100, None).await?;
    /// assert_eq!(page.rows, [ShadowId::new("lamp-7")?, ShadowId::new("lamp-8")?]);
    /// # Ok::<(), antumbra_service::shadows::ShadowError>(())
    /// # }).unwrap();
    /// ```
    pub async fn list_by_prefix(
        &self,
        prefix: &str,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<ShadowId>, ShadowError> {
        self.list_within(&IdRanges::all(), prefix, limit, cursor)
            .await
    }

    /// The same, of some ids only.
    pub async fn list_within(
        &self,
        within: &IdRanges,
        prefix: &str,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<ShadowId>, ShadowError> {
        let page = self
            .store
            .list_by_prefix(prefix, within, limit, cursor)
            .await;
        page.map_err(ShadowError::store)
    }
}
