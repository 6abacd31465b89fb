//! Secrets: read by whoever signs, changed by rotation.

use antumbra_service::clients::{ClientError, ClientId, Rotation, Secrets};
use aws_sdk_dynamodb::types::{ReturnValue, ReturnValuesOnConditionCheckFailure};

use super::DynamoDbClients;
use super::item::{self, CURRENT, epoch_ms, s, time};
use super::keys::secrets_key;
use super::update::{Updated, outcome};
use crate::errors;

impl DynamoDbClients {
    pub(super) async fn read_secrets(&self, id: &ClientId) -> Result<Secrets, ClientError> {
        let found = self
            .database
            .get_item()
            .table_name(&self.table)
            .set_key(Some(secrets_key(id)))
            .consistent_read(true)
            .send()
            .await
            .map_err(|error| errors::of_call("GetItem", &error, 0))?;
        let found = found.item.ok_or(ClientError::NotFound)?;
        Ok(item::decode_secrets(&found)?)
    }

    /// The condition keeps a request that comes again, be it the SDK's own repetition, from making another
    /// secret and taking its first for the previous one.
    pub(super) async fn rotate_secrets(
        &self,
        id: &ClientId,
        rotation: &Rotation,
    ) -> Result<Secrets, ClientError> {
        let rotated = self
            .database
            .update_item()
            .table_name(&self.table)
            .set_key(Some(secrets_key(id)))
            .update_expression(
                "SET #previous = #current, #previousUntil = :previousUntil, #current = :secret, \
                 #by = :by, #until = :until",
            )
            .condition_expression(
                "attribute_exists(#current) \
                 AND (attribute_not_exists(#by) OR #by <> :by OR #until <= :now)",
            )
            .expression_attribute_names("#current", CURRENT)
            .expression_attribute_names("#previous", item::PREVIOUS)
            .expression_attribute_names("#previousUntil", item::PREVIOUS_UNTIL)
            .expression_attribute_names("#by", item::REQUESTED_BY)
            .expression_attribute_names("#until", item::REQUESTED_UNTIL)
            .expression_attribute_values(":secret", s(rotation.secret.reveal()))
            .expression_attribute_values(":previousUntil", time(rotation.previous_until))
            .expression_attribute_values(":by", s(&rotation.requested.by))
            .expression_attribute_values(":until", epoch_ms(rotation.requested.until))
            .expression_attribute_values(":now", epoch_ms(rotation.now))
            .return_values(ReturnValue::AllNew)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .send()
            .await;
        match outcome(rotated)? {
            Updated::Done(stored) | Updated::Refused(Some(stored)) => {
                Ok(item::decode_secrets(&stored)?)
            }
            Updated::Refused(None) => Err(ClientError::NotFound),
        }
    }
}
