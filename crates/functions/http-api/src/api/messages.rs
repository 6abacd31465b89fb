//! What the routes need of the inbox.

use antumbra_service::inbox::{
    self, InboxMessage, ListRequest, MessageDeleter, MessageId, MessageIndex, MessageReader, Page,
    Source,
};
use antumbra_service::notifications::BoxFuture;
use antumbra_service::store::StoreError;
use antumbra_shadow::Timestamp;

/// The use cases of the inbox that the routes call.
pub trait MessageService: Send + Sync {
    /// See [`inbox::list`].
    fn list<'a>(
        &'a self,
        source: &'a Source,
        request: &'a ListRequest,
    ) -> BoxFuture<'a, Result<Page<MessageId>, StoreError>>;

    /// See [`MessageReader::get_all`].
    fn get_all<'a>(
        &'a self,
        source: &'a Source,
        ids: &'a [MessageId],
    ) -> BoxFuture<'a, Result<Vec<InboxMessage>, StoreError>>;

    /// See [`MessageReader::get`].
    fn get<'a>(
        &'a self,
        source: &'a Source,
        id: &'a MessageId,
    ) -> BoxFuture<'a, Result<Option<InboxMessage>, StoreError>>;

    /// See [`MessageDeleter::delete`].
    fn delete<'a>(
        &'a self,
        source: &'a Source,
        id: &'a MessageId,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<(), StoreError>>;
}

impl<T: MessageReader + MessageIndex + MessageDeleter> MessageService for T {
    fn list<'a>(
        &'a self,
        source: &'a Source,
        request: &'a ListRequest,
    ) -> BoxFuture<'a, Result<Page<MessageId>, StoreError>> {
        Box::pin(inbox::list(self, source, request))
    }

    fn get_all<'a>(
        &'a self,
        source: &'a Source,
        ids: &'a [MessageId],
    ) -> BoxFuture<'a, Result<Vec<InboxMessage>, StoreError>> {
        Box::pin(MessageReader::get_all(self, source, ids))
    }

    fn get<'a>(
        &'a self,
        source: &'a Source,
        id: &'a MessageId,
    ) -> BoxFuture<'a, Result<Option<InboxMessage>, StoreError>> {
        Box::pin(MessageReader::get(self, source, id))
    }

    fn delete<'a>(
        &'a self,
        source: &'a Source,
        id: &'a MessageId,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(MessageDeleter::delete(self, source, id, now))
    }
}
