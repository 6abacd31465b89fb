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

/// Result of storing a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stored {
    /// The message was stored.
    New,
    /// The message exists or was deleted before; nothing changed.
    Known,
}

/// Error of storing a message.
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

/// Writes messages.
pub trait MessageWriter: Send + Sync {
    /// Keeps a message, in one write. A second time, also after it was deleted, nothing happens.
    fn store(
        &self,
        message: &InboxMessage,
    ) -> impl Future<Output = Result<Stored, StoreMessageError>> + Send;
}

/// Records when sources last sent a message.
pub trait SourceTracker: Send + Sync {
    /// Records that a source sent a message at this time; only the hour is stored. An earlier time than the stored
    /// one changes nothing.
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

/// Order of messages.
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
    /// Order of messages.
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

/// A source and the time of its last message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contact {
    /// Source.
    pub source: Source,
    /// The beginning of the hour of its last message.
    pub last_contact: Timestamp,
}

/// Lists all sources, including those without messages left.
pub trait Sources: Send + Sync {
    /// At most `limit` (1 to 1000) of them, in one read.
    fn sources(
        &self,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> impl Future<Output = Result<Page<Contact>, StoreError>> + Send;
}
