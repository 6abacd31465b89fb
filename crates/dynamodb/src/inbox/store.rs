//! Stores a message: one conditional put, a no-op if the message or its tombstone exists.

use antumbra_service::inbox::{InboxMessage, MessageWriter, StoreMessageError, Stored};
use antumbra_service::store::StoreError;

use super::DynamoDbInbox;
use super::item::encode;
use crate::error::COLLECTION_BYTES;
use crate::table::{Outcome, Write};

impl MessageWriter for DynamoDbInbox {
    async fn store(&self, message: &InboxMessage) -> Result<Stored, StoreMessageError> {
        // `uuid` is the partition key, so every item has it, also a tombstone.
        let put = Write::put(encode(&self.table, message)?)
            .condition("attribute_not_exists(#uuid)")
            .bytes(message.item_bytes());
        match self.table.write(put).await {
            Ok(Outcome::Applied(_)) => Ok(Stored::New),
            Ok(Outcome::Refused(_)) => Ok(Stored::Known),
            Err(StoreError::TooLarge { limit, .. }) if limit == COLLECTION_BYTES => {
                Err(StoreMessageError::SourceFull)
            }
            Err(error) => Err(error.into()),
        }
    }
}
