use antumbra_service::inbox::{InboxMessage, MessageId, MessageReader, Source};
use antumbra_service::store::StoreError;

use super::DynamoDbInbox;
use super::item::{decode, key};
use crate::table::BatchRead;

/// Messages of one request, which is one call.
const MESSAGES_AT_ONCE: usize = 100;

impl MessageReader for DynamoDbInbox {
    async fn get(
        &self,
        source: &Source,
        id: &MessageId,
    ) -> Result<Option<InboxMessage>, StoreError> {
        let found = self.table.get(&key(source, id)).await?;
        found.map_or(Ok(None), decode)
    }

    async fn get_all(
        &self,
        source: &Source,
        ids: &[MessageId],
    ) -> Result<Vec<InboxMessage>, StoreError> {
        if ids.len() > MESSAGES_AT_ONCE {
            return Err(StoreError::Invalid(format!(
                "{} messages at once, the limit is {MESSAGES_AT_ONCE}",
                ids.len()
            )));
        }
        let keys = || ids.iter().map(|id| key(source, id));
        let found = self.table.get_many(keys().collect(), BatchRead::CONSISTENT);
        let found = found.await?;
        keys()
            .filter_map(|key| decode(found.get(&key)?.clone()).transpose())
            .collect()
    }
}
