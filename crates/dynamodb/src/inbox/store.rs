//! Storing: one conditional put, which finds nothing to do where a message or its tombstone is.

use antumbra_service::inbox::{InboxMessage, MessageWriter, StoreMessageError, Stored};
use aws_sdk_dynamodb::error::ProvideErrorMetadata;

use super::DynamoDbInbox;
use super::item::{SOURCE, encode};
use crate::errors;

impl MessageWriter for DynamoDbInbox {
    async fn store(&self, message: &InboxMessage) -> Result<Stored, StoreMessageError> {
        let call = self
            .client
            .put_item()
            .table_name(&self.table)
            .set_item(Some(encode(message)))
            .condition_expression("attribute_not_exists(#source)")
            .expression_attribute_names("#source", SOURCE);
        let Err(error) = call.send().await else {
            return Ok(Stored::New);
        };
        let refused = error.as_service_error();
        if refused.is_some_and(|refused| refused.is_conditional_check_failed_exception()) {
            return Ok(Stored::Known);
        }
        let code = refused.and_then(ProvideErrorMetadata::code);
        if code == Some("ItemCollectionSizeLimitExceededException") {
            return Err(StoreMessageError::SourceFull);
        }
        Err(errors::of_call("PutItem", &error, message.item_bytes()).into())
    }
}
