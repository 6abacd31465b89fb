//! Deletes: the message becomes a tombstone until its queue can no longer deliver it again.

use std::time::Duration;

use antumbra_service::inbox::{MessageDeleter, MessageId, Source};
use antumbra_service::store::StoreError;
use antumbra_shadow::Timestamp;

use super::DynamoDbInbox;
use super::item::key;
use crate::table::Write;
use crate::value::{epoch_seconds, text};

/// A queue keeps a message for at most 14 days. One more day covers clocks that differ and a delivery in
/// progress at the end.
const REDELIVERED_WITHIN: Duration = Duration::from_secs(15 * 24 * 60 * 60);

impl MessageDeleter for DynamoDbInbox {
    async fn delete(
        &self,
        source: &Source,
        id: &MessageId,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let update = "SET #deletedAt = :now, #ttl = :ttl REMOVE #undeletedId, #body, #bodyText";
        let update = Write::update(key(source, id), update)
            // A delete of a message that never existed must not store anything.
            .condition("attribute_exists(#undeletedId)")
            .value(":now", text(now.to_string()))
            .value(":ttl", epoch_seconds(now.after(REDELIVERED_WITHIN)));
        self.table.write(update).await.map(drop)
    }
}
