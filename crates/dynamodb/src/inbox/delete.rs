//! Deleting: the message becomes a tombstone, until its queue cannot hand it over any more.

use std::time::Duration;

use antumbra_service::inbox::{MessageDeleter, MessageId, Source};
use antumbra_service::store::StoreError;
use antumbra_shadow::Timestamp;

use super::DynamoDbInbox;
use super::item::{BODY, BODY_TEXT, DELETED_AT, TTL, UNDELETED_ID, epoch_seconds, key, text};
use crate::errors;

/// A queue keeps a message for at most 14 days from when it was sent, which was before it was stored. The
/// day more is for clocks that differ and for a delivery under way at the end.
const REDELIVERED_WITHIN: Duration = Duration::from_secs(15 * 24 * 60 * 60);

impl MessageDeleter for DynamoDbInbox {
    async fn delete(
        &self,
        source: &Source,
        id: &MessageId,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let forgotten_at = now.after(REDELIVERED_WITHIN);
        let call = self
            .client
            .update_item()
            .table_name(&self.table)
            .set_key(Some(key(source, id)))
            // What is not there, or is a tombstone already, stays as it is: whoever deletes what never
            // was must not be able to fill the table.
            .condition_expression("attribute_exists(#undeleted)")
            .update_expression("SET #deleted = :now, #ttl = :ttl REMOVE #undeleted, #body, #text")
            .expression_attribute_names("#undeleted", UNDELETED_ID)
            .expression_attribute_names("#deleted", DELETED_AT)
            .expression_attribute_names("#ttl", TTL)
            .expression_attribute_names("#body", BODY)
            .expression_attribute_names("#text", BODY_TEXT)
            .expression_attribute_values(":now", text(&now.to_string()))
            .expression_attribute_values(":ttl", epoch_seconds(forgotten_at));
        match call.send().await {
            Ok(_) => Ok(()),
            Err(error) => {
                let refused = error.as_service_error();
                if refused.is_some_and(|refused| refused.is_conditional_check_failed_exception()) {
                    return Ok(());
                }
                Err(errors::of_call("UpdateItem", &error, 0))
            }
        }
    }
}
