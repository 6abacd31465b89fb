//! How an `UpdateItem` with a condition ended.

use antumbra_service::store::StoreError;
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::update_item::{UpdateItemError, UpdateItemOutput};

use super::keys::Item;
use crate::errors;

/// What an update came to.
pub(crate) enum Updated {
    /// It took place; the item, if it was asked for.
    Done(Item),
    /// Its condition did not hold; what is stored instead, if anything.
    Refused(Option<Item>),
}

/// Reads the answer to an update that asked for the old item where its condition fails.
pub(crate) fn outcome(
    answer: Result<UpdateItemOutput, SdkError<UpdateItemError>>,
) -> Result<Updated, StoreError> {
    match answer {
        Ok(output) => Ok(Updated::Done(output.attributes.unwrap_or_default())),
        Err(error) => match error.as_service_error() {
            Some(UpdateItemError::ConditionalCheckFailedException(failed)) => {
                Ok(Updated::Refused(failed.item().cloned()))
            }
            _ => Err(errors::of_call("UpdateItem", &error, 0)),
        },
    }
}
