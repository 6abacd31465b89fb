//! The ports of the inbox, one for each role: what a function may do is which of them it takes.
//!
//! Laws that hold for all of them:
//!
//! - What was stored is read at once, by everybody: reads are consistent.
//! - What was deleted is read by nobody, and storing it again does not bring it back.
//! - Messages of a source are in the order of their ids, byte by byte.
//! - What an operation costs does not grow with how many messages were deleted before.
//! - Every failure is a [`StoreError`]; one that is retryable may be tried again with the same arguments
//!   and ends in the same state, whether the first try took place or not.

use std::future::Future;

use antumbra_shadow::Timestamp;

use super::{InboxMessage, MessageId, Source};
use crate::paging::{Cursor, Page};
use crate::store::StoreError;

/// What became of a message that was to be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stored {
    /// It is there now, and was not before.
    New,
    /// It is there already, or was and has been deleted. Nothing was changed.
    Known,
}

/// Why a message was not stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreMessageError {
    /// The source has as many messages as the store can hold of one. It stays so until some are deleted
    /// or expire.
    #[error("the source has no room for more messages")]
    SourceFull,
    /// Anything else.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Keeps messages.
pub trait MessageWriter: Send + Sync {
    /// Keeps a message, in one write. A second time, also after it was deleted, nothing happens.
    fn store(
        &self,
        message: &InboxMessage,
    ) -> impl Future<Output = Result<Stored, StoreMessageError>> + Send;
}

/// Notes who was heard of.
pub trait SourceTracker: Send + Sync {
    /// Notes that a source was heard of at this time, which only its hour is kept of. An earlier time than
    /// the one noted changes nothing.
    fn touch(
        &self,
        source: &Source,
        at: Timestamp,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
}

/// Reads messages by their ids.
pub trait MessageReader: Send + Sync {
    /// The message, in one read; `None` if there is none or it was deleted.
    fn get(
        &self,
        source: &Source,
        id: &MessageId,
    ) -> impl Future<Output = Result<Option<InboxMessage>, StoreError>> + Send;

    /// Those of the messages that are there, in the order asked for. At most 100 ids.
    fn get_all(
        &self,
        source: &Source,
        ids: &[MessageId],
    ) -> impl Future<Output = Result<Vec<InboxMessage>, StoreError>> + Send;
}

/// Which way to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// From the oldest on: ids rise.
    #[default]
    OldestFirst,
    /// From the newest back: ids fall.
    NewestFirst,
}

/// Some messages of one source.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Range {
    /// Not before this id.
    pub from: Option<MessageId>,
    /// Not behind this id.
    pub to: Option<MessageId>,
    /// Which way to go.
    pub order: Order,
    /// Go on behind this id, in that order; it is not given again. It need not exist.
    pub after: Option<MessageId>,
}

/// Finds messages by their order.
pub trait MessageIndex: Send + Sync {
    /// The ids of a range, at most `limit` (1 to 1000), in one read. Fewer than that means that there are
    /// no more.
    fn ids(
        &self,
        source: &Source,
        range: &Range,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<MessageId>, StoreError>> + Send;

    /// The first message of all, in one read.
    fn oldest(
        &self,
        source: &Source,
    ) -> impl Future<Output = Result<Option<MessageId>, StoreError>> + Send {
        first(self, source, Range::default())
    }

    /// The last message of all, in one read.
    fn newest(
        &self,
        source: &Source,
    ) -> impl Future<Output = Result<Option<MessageId>, StoreError>> + Send {
        let order = Order::NewestFirst;
        first(
            self,
            source,
            Range {
                order,
                ..Range::default()
            },
        )
    }

    /// The first message behind an id, in one read. The id need not be one of a message.
    fn next(
        &self,
        source: &Source,
        id: &MessageId,
    ) -> impl Future<Output = Result<Option<MessageId>, StoreError>> + Send {
        let after = Some(id.clone());
        first(
            self,
            source,
            Range {
                after,
                ..Range::default()
            },
        )
    }

    /// The last message before an id, in one read. The id need not be one of a message.
    fn prev(
        &self,
        source: &Source,
        id: &MessageId,
    ) -> impl Future<Output = Result<Option<MessageId>, StoreError>> + Send {
        let (after, order) = (Some(id.clone()), Order::NewestFirst);
        first(
            self,
            source,
            Range {
                after,
                order,
                ..Range::default()
            },
        )
    }
}

async fn first<Q: MessageIndex + ?Sized>(
    query: &Q,
    source: &Source,
    range: Range,
) -> Result<Option<MessageId>, StoreError> {
    Ok(query.ids(source, &range, 1).await?.into_iter().next())
}

/// Deletes messages.
pub trait MessageDeleter: Send + Sync {
    /// Deletes a message, in one write. That there is none is no error, and leaves nothing behind. `now`
    /// is from when on it is gone, and how long that has to be remembered.
    fn delete(
        &self,
        source: &Source,
        id: &MessageId,
        now: Timestamp,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
}

/// A source and when it was last heard of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contact {
    /// Who.
    pub source: Source,
    /// The beginning of the hour of its last message.
    pub last_contact: Timestamp,
}

/// Tells who was ever heard of, also those whose messages are all deleted.
pub trait Sources: Send + Sync {
    /// At most `limit` (1 to 1000) of them, in one read.
    fn sources(
        &self,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> impl Future<Output = Result<Page<Contact>, StoreError>> + Send;
}
