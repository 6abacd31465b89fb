//! The ports of the inbox, one for each role.
//!
//! Laws of all of them:
//!
//! - Reads are consistent: every later read sees a stored message.
//! - A deleted message is never read, and storing it again does not restore it.
//! - Messages of a source are ordered by id, byte by byte.
//! - Costs do not grow with the number of deleted messages.
//! - Every failure is a [`StoreError`]. After a retryable one the call can be repeated, and ends in the same state
//!   whether the first attempt was applied or not.

use antumbra_shadow::Timestamp;

use super::{InboxMessage, MessageId, Source};
use crate::paging::{Cursor, Page};
use crate::store::{SendFuture, StoreError};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stored {
    New,
    /// The message exists or was deleted before; nothing changed.
    Known,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreMessageError {
    /// The source has as many messages as the store can hold of one, until some are deleted or expire.
    #[error("the source has no room for more messages")]
    SourceFull,
    #[error(transparent)]
    Store(#[from] StoreError),
}

pub trait MessageWriter: Send + Sync {
    /// Stores a message, in one write. Storing it again, also after a delete, changes nothing.
    fn store(&self, message: &InboxMessage) -> impl SendFuture<Result<Stored, StoreMessageError>>;
}

/// Records when sources last sent a message.
pub trait SourceTracker: Send + Sync {
    /// Records that a source sent a message at this time; only its [hour](super::contact_hour) is stored. An earlier
    /// time than the stored one changes nothing.
    fn touch(&self, source: &Source, at: Timestamp) -> impl SendFuture<Result<(), StoreError>>;
}

pub trait MessageReader: Send + Sync {
    /// Reads a message, in one read; `None` if there is none or it was deleted.
    fn get(
        &self,
        source: &Source,
        id: &MessageId,
    ) -> impl SendFuture<Result<Option<InboxMessage>, StoreError>>;

    /// Reads messages in the order of the ids, without those that do not exist. At most 100 ids.
    fn get_all(
        &self,
        source: &Source,
        ids: &[MessageId],
    ) -> impl SendFuture<Result<Vec<InboxMessage>, StoreError>>;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    #[default]
    OldestFirst,
    NewestFirst,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Range {
    /// Smallest id.
    pub from: Option<MessageId>,
    /// Largest id.
    pub to: Option<MessageId>,
    pub order: Order,
    /// Start after this id, in that order. It need not exist.
    pub after: Option<MessageId>,
}

pub trait MessageIndex: Send + Sync {
    /// Returns the ids of a range, at most `limit` (1 to 1000), in one read. Fewer than `limit` means that there are no
    /// more.
    fn ids(
        &self,
        source: &Source,
        range: &Range,
        limit: usize,
    ) -> impl SendFuture<Result<Vec<MessageId>, StoreError>>;

    /// Returns the oldest message, in one read.
    fn oldest(&self, source: &Source) -> impl SendFuture<Result<Option<MessageId>, StoreError>> {
        first(self, source, Order::OldestFirst, None)
    }

    /// Returns the newest message, in one read.
    fn newest(&self, source: &Source) -> impl SendFuture<Result<Option<MessageId>, StoreError>> {
        first(self, source, Order::NewestFirst, None)
    }

    /// Returns the first message after an id, in one read. The id need not exist.
    fn next(
        &self,
        source: &Source,
        id: &MessageId,
    ) -> impl SendFuture<Result<Option<MessageId>, StoreError>> {
        first(self, source, Order::OldestFirst, Some(id.clone()))
    }

    /// Returns the last message before an id, in one read. The id need not exist.
    fn prev(
        &self,
        source: &Source,
        id: &MessageId,
    ) -> impl SendFuture<Result<Option<MessageId>, StoreError>> {
        first(self, source, Order::NewestFirst, Some(id.clone()))
    }
}

async fn first<Q: MessageIndex + ?Sized>(
    query: &Q,
    source: &Source,
    order: Order,
    after: Option<MessageId>,
) -> Result<Option<MessageId>, StoreError> {
    let range = Range {
        order,
        after,
        ..Range::default()
    };
    Ok(query.ids(source, &range, 1).await?.into_iter().next())
}

pub trait MessageDeleter: Send + Sync {
    /// Deletes a message, in one write. If there is none, nothing is written. `now` starts the time for which the
    /// deletion is remembered.
    fn delete(
        &self,
        source: &Source,
        id: &MessageId,
        now: Timestamp,
    ) -> impl SendFuture<Result<(), StoreError>>;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contact {
    pub source: Source,
    /// Start of the hour of its last message.
    pub last_contact: Timestamp,
}

/// Lists all sources, including those without messages left.
pub trait Sources: Send + Sync {
    /// Returns a page of at most `limit` (1 to 1000) sources, in one read.
    fn sources(
        &self,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> impl SendFuture<Result<Page<Contact>, StoreError>>;
}
