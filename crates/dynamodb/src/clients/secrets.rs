//! Secrets: read by whoever signs, changed by rotation.

use antumbra_service::clients::{ClientError, ClientId, Secret, Secrets};
use antumbra_shadow::Timestamp;
use aws_sdk_dynamodb::types::ReturnValuesOnConditionCheckFailure;

use super::DynamoDbClients;
use super::item::{self, CURRENT, s, time};
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

    /// The condition keeps a call that the SDK repeats from taking the new secret for the previous one.
    pub(super) async fn rotate_secrets(
        &self,
        id: &ClientId,
        secret: &Secret,
        previous_until: Timestamp,
    ) -> Result<(), ClientError> {
        let rotated = self
            .database
            .update_item()
            .table_name(&self.table)
            .set_key(Some(secrets_key(id)))
            .update_expression("SET #previous = #current, #until = :until, #current = :secret")
            .condition_expression("attribute_exists(#current) AND #current <> :secret")
            .expression_attribute_names("#current", CURRENT)
            .expression_attribute_names("#previous", item::PREVIOUS)
            .expression_attribute_names("#until", item::PREVIOUS_UNTIL)
            .expression_attribute_values(":secret", s(secret.reveal()))
            .expression_attribute_values(":until", time(previous_until))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .send()
            .await;
        match outcome(rotated)? {
            Updated::Done(_) | Updated::Refused(Some(_)) => Ok(()),
            Updated::Refused(None) => Err(ClientError::NotFound),
        }
    }
}
