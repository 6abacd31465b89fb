//! Port for storing shadows.

use std::collections::HashMap;
use std::time::Duration;

use antumbra_shadow::{AcknowledgedLeaves, Document, LeafTimes, State, Timestamp};
use futures_util::stream::{self, StreamExt};
use serde::{Deserialize, Serialize};

use super::id::{ClientToken, ShadowId, Zone};
use crate::access::IdRanges;
use crate::paging::{Cursor, Page};
use crate::store::{SendFuture, StoreError, Version};

/// Time for which the version of a deleted document is kept: a document created again within this time continues
/// its versions.
pub const VERSION_KEPT: Duration = Duration::from_secs(48 * 60 * 60);

/// Shadows that one call works on at the same time.
pub(super) const SHADOWS_AT_ONCE: usize = 16;

/// Layout of the two documents of a shadow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    /// One item each, with a version each.
    #[default]
    Separate,
    /// One item with one version for both.
    Combined,
}

impl Layout {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Layout::Separate => "separate",
            Layout::Combined => "combined",
        }
    }
}

/// Set of requested documents of a shadow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum DocumentSet {
    Reported,
    Desired,
    Both,
}

impl From<State> for DocumentSet {
    fn from(state: State) -> DocumentSet {
        match state {
            State::Reported => DocumentSet::Reported,
            State::Desired => DocumentSet::Desired,
        }
    }
}

impl DocumentSet {
    /// Returns whether the set contains a document.
    pub fn has(self, state: State) -> bool {
        matches!(
            (self, state),
            (DocumentSet::Both, _)
                | (DocumentSet::Reported, State::Reported)
                | (DocumentSet::Desired, State::Desired)
        )
    }
}

/// Consistency of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReadConsistency {
    /// May miss the latest writes.
    Eventual,
    /// Sees every earlier completed write.
    Strong,
    /// Strong, and both documents of one shadow as they were at one instant.
    Snapshot,
}

/// One shadow to read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Read {
    pub shadow: ShadowId,
    pub parts: DocumentSet,
}

/// A stored document.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct StoredDocument {
    pub document: Document,
    pub version: Version,
    pub timestamp: Timestamp,
    /// Time zone that a writer named last.
    pub zone: Option<Zone>,
    pub client_token: Option<ClientToken>,
    /// Time of each leaf, if the last writer stored it.
    pub times: Option<LeafTimes>,
    /// Number of writes of times alone since the document was written.
    pub times_version: i64,
}

impl StoredDocument {
    /// Returns the time of each leaf; the time of the last write if it was not stored.
    pub fn leaf_times(&self) -> LeafTimes {
        let times = self.times.clone();
        times.unwrap_or_else(|| LeafTimes::all(&self.document, self.timestamp))
    }
}

/// Documents of a shadow as read, and versions of deleted ones.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Snapshot {
    /// Reported document, if requested and stored.
    pub reported: Option<StoredDocument>,
    /// Desired document, if requested and stored.
    pub desired: Option<StoredDocument>,
    /// Versions of requested documents that were deleted recently.
    pub deleted: DeletedVersions,
}

impl Snapshot {
    /// Returns whether neither document exists.
    pub fn is_absent(&self) -> bool {
        self.reported.is_none() && self.desired.is_none()
    }

    /// Returns the version of the shadow: that of its item, or the sum of both if there are two. For a deleted
    /// shadow, the version it had.
    pub fn version(&self, layout: Layout) -> Version {
        let of = |held: &Option<StoredDocument>| {
            held.as_ref().map_or(Version::NONE, |held| held.version)
        };
        let (reported, desired) = match self.is_absent() {
            true => (self.deleted.reported, self.deleted.desired),
            false => (of(&self.reported), of(&self.desired)),
        };
        match layout {
            Layout::Separate => Version(reported.0.saturating_add(desired.0)),
            Layout::Combined => reported.max(desired),
        }
    }

    /// Returns the time of a write that replaces what was read: now, but later than every write that was read, whose
    /// writer's clock may be ahead.
    pub fn next_time(&self, now: Timestamp) -> Timestamp {
        let documents = [&self.reported, &self.desired].into_iter().flatten();
        let written = documents.map(|held| held.timestamp);
        let deleted = self.deleted.written.into_iter().flatten();
        let latest = written.chain(deleted).max();
        latest.map_or(now, |latest| now.max(latest.after(Duration::from_nanos(1))))
    }
}

/// Versions of deleted documents, and the times of the last delete; empty if there was none within [`VERSION_KEPT`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub struct DeletedVersions {
    pub reported: Version,
    pub desired: Version,
    /// Messages from before this time do not bring the documents back.
    pub at: Option<Timestamp>,
    /// Times of the writes that deleted the reported and the desired document. They differ where one was created again and
    /// deleted on its own.
    pub written: [Option<Timestamp>; 2],
    /// Times of the writes before those.
    pub previous: [Option<Timestamp>; 2],
}

/// A document to be written in place of the one that has the expected version.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct NewDocument {
    pub document: Document,
    /// Expected stored version; [`Version::NONE`] to create.
    pub expected: Version,
    /// A document that is created has a version above this one.
    pub min_version: Version,
    /// Time of each leaf, to be stored with the document.
    pub times: Option<LeafTimes>,
    /// Expected [`StoredDocument::times_version`].
    pub expected_times: i64,
    /// Writes the times only: document, version, time of the write, zone and token stay.
    pub times_only: bool,
    pub zone: Option<Zone>,
    /// Leaves of the stored document that are missing because they are reported; for desired documents only.
    pub acknowledged: Option<AcknowledgedLeaves>,
}

impl NewDocument {
    /// Returns the document as it is stored with this version in place of another one.
    pub fn stored(
        &self,
        write: &Write,
        version: Version,
        held: Option<&StoredDocument>,
    ) -> StoredDocument {
        match held {
            Some(held) if self.times_only => StoredDocument {
                times: self.times.clone(),
                times_version: self.expected_times + 1,
                ..held.clone()
            },
            _ => StoredDocument {
                document: self.document.clone(),
                version,
                timestamp: write.timestamp,
                zone: self.zone.clone(),
                client_token: write.client_token.clone(),
                times: self.times.clone(),
                times_version: 0,
            },
        }
    }
}

/// One shadow to write: either document, or both as one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Write {
    pub shadow: ShadowId,
    pub reported: Option<NewDocument>,
    pub desired: Option<NewDocument>,
    pub timestamp: Timestamp,
    pub client_token: Option<ClientToken>,
    /// Version that the unwritten document must have; [`Version::NONE`] if it must not exist. Only for
    /// documents in separate items.
    pub other_version: Option<Version>,
}

impl Write {
    /// Returns the new document of this state, if it is written.
    pub fn part(&self, state: State) -> Option<&NewDocument> {
        match state {
            State::Reported => self.reported.as_ref(),
            State::Desired => self.desired.as_ref(),
        }
    }
}

/// Versions after a write; `None` for documents that were not written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub struct Written {
    pub reported: Option<Version>,
    pub desired: Option<Version>,
}

/// Condition of a delete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpectedVersion {
    /// Any version, or no document.
    Any,
    /// Exactly this version.
    Version(Version),
    /// Exactly this version, with this [`StoredDocument::times_version`].
    Unchanged(Version, i64),
}

impl ExpectedVersion {
    /// Returns the condition that a document is unchanged since it was read.
    pub fn unchanged(stored: &StoredDocument) -> ExpectedVersion {
        ExpectedVersion::Unchanged(stored.version, stored.times_version)
    }

    /// Returns the expected version and number of times-only writes, if given.
    pub fn parts(self) -> (Option<Version>, Option<i64>) {
        match self {
            ExpectedVersion::Any => (None, None),
            ExpectedVersion::Version(version) => (Some(version), None),
            ExpectedVersion::Unchanged(version, times) => (Some(version), Some(times)),
        }
    }
}

/// One shadow to delete: either document, or both as one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Delete {
    pub shadow: ShadowId,
    pub reported: Option<ExpectedVersion>,
    pub desired: Option<ExpectedVersion>,
    /// Version that the remaining document must have, as in [`Write::other_version`].
    pub other_version: Option<Version>,
    /// Time of the message that deletes; if it has none, that of the write.
    pub time: Option<Timestamp>,
}

impl Delete {
    /// Deletes both documents, whatever their versions.
    pub fn whole(shadow: ShadowId) -> Delete {
        Delete {
            shadow,
            reported: Some(ExpectedVersion::Any),
            desired: Some(ExpectedVersion::Any),
            other_version: None,
            time: None,
        }
    }
}

/// One document in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct DocumentSummary {
    pub shadow: ShadowId,
    pub state: State,
    pub version: Version,
    pub timestamp: Timestamp,
    pub client_token: Option<ClientToken>,
}

/// Stores shadows.
///
/// Laws, kept by every implementation:
/// - A write is conditional on the version: the stored version must equal the expected one (no document for
///   [`Version::NONE`]); then the document is replaced and its version increases by one. Otherwise the result
///   is `Conflict` and nothing changes. [`Write::other_version`] and
///   [`Delete::other_version`] are conditions of the same kind on the document that is not changed.
/// - A write of times only is conditional in the same way and leaves the version as it is. Every write is also
///   conditional on the number of such writes since the document was written.
/// - A created document has version 1, unless it was deleted less than [`VERSION_KEPT`] ago: then its
///   versions continue after the deleted one. In both cases the version is above
///   [`NewDocument::min_version`]. The result of the write contains it. The write is later than the delete; an
///   earlier one is a `Conflict`.
/// - Both documents of one [`Write`] or [`Delete`] change together or not at all.
/// - Under [`Layout::Combined`] a write contains both documents with the same expected version, and a delete
///   both documents with the same expectation; anything else is `Invalid`. A write or delete of no document
///   is `Invalid` in either layout.
/// - A delete of a version is conditional: `NotFound` if nothing is stored, `Conflict` if another version is.
///   A delete of [`ExpectedVersion::Any`] always succeeds.
/// - A read returns `NotFound` if none of the requested documents exists or was deleted recently, and
///   never a document that was not requested. Of a deleted document it returns the version; listings and
///   conditions ignore deleted documents.
/// - A failed write with `Unavailable` may have been applied; any other failed write was not.
#[allow(missing_docs)]
pub trait ShadowStore: Send + Sync {
    /// Returns how this store keeps the two documents.
    fn layout(&self) -> Layout;

    fn read(
        &self,
        read: &Read,
        consistency: ReadConsistency,
    ) -> impl SendFuture<Result<Snapshot, StoreError>>;

    /// Reads shadows. Returns one result per read, in the given order.
    fn read_many(
        &self,
        reads: &[Read],
        consistency: ReadConsistency,
    ) -> impl SendFuture<Vec<Result<Snapshot, StoreError>>> {
        in_order_per_shadow(
            reads,
            |read| &read.shadow,
            move |read| self.read(read, consistency),
        )
    }

    fn write(&self, write: &Write) -> impl SendFuture<Result<Written, StoreError>>;

    /// Writes shadows concurrently, the same shadow in the given order. Returns one result per write.
    fn write_many(&self, writes: &[Write]) -> impl SendFuture<Vec<Result<Written, StoreError>>> {
        in_order_per_shadow(writes, |write| &write.shadow, |write| self.write(write))
    }

    /// Deletes a shadow. The time is that of the write.
    fn delete(&self, delete: &Delete, now: Timestamp) -> impl SendFuture<Result<(), StoreError>>;

    /// Deletes shadows concurrently, the same shadow in the given order. Returns one result per delete.
    fn delete_many(
        &self,
        deletes: &[Delete],
        now: Timestamp,
    ) -> impl SendFuture<Vec<Result<(), StoreError>>> {
        in_order_per_shadow(
            deletes,
            |delete| &delete.shadow,
            move |delete| self.delete(delete, now),
        )
    }

    /// Lists the documents of a device by its id, at most `limit` (1 to 1000) per page, in no stated order. Each document
    /// that exists during the whole listing appears exactly once. Under [`Layout::Combined`] a shadow counts as two
    /// documents, and a page holds at least one shadow.
    fn list(
        &self,
        id: &str,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> impl SendFuture<Result<Page<DocumentSummary>, StoreError>>;

    /// Lists the shadows whose id starts with a text and is one of `within`, ordered by id and name except for very long
    /// ones, at most `limit` (1 to 1000) per page. Each shadow that exists during the whole listing appears exactly once.
    /// It may lag behind by a moment. Entries of other ids are not read. A cursor is valid for the same text, and while its
    /// place is within `within`.
    fn list_by_prefix(
        &self,
        prefix: &str,
        within: &IdRanges,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> impl SendFuture<Result<Page<ShadowId>, StoreError>>;
}

/// Runs an operation per item: different shadows concurrently, the same shadow in the given order. Returns one
/// result per item.
async fn in_order_per_shadow<'a, T: Sync, R: Send, F>(
    items: &'a [T],
    shadow: impl Fn(&T) -> &ShadowId,
    run: impl Fn(&'a T) -> F,
) -> Vec<R>
where
    F: Future<Output = R>,
{
    let run = &run;
    let groups = group_by_shadow(items, shadow)
        .into_iter()
        .map(async |group| {
            let mut results = Vec::with_capacity(group.len());
            for position in group {
                results.push((position, run(&items[position]).await));
            }
            results
        });
    let done = stream::iter(groups).buffer_unordered(SHADOWS_AT_ONCE);
    let mut results: Vec<(usize, R)> = done.flat_map(stream::iter).collect().await;
    results.sort_unstable_by_key(|(position, _)| *position);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Returns the positions of the items of each shadow, shadows in the order of their first item.
pub(super) fn group_by_shadow<T>(items: &[T], shadow: impl Fn(&T) -> &ShadowId) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut group_of: HashMap<&ShadowId, usize> = HashMap::new();
    for (position, item) in items.iter().enumerate() {
        let group = *group_of.entry(shadow(item)).or_insert_with(|| {
            groups.push(Vec::new());
            groups.len() - 1
        });
        groups[group].push(position);
    }
    groups
}
