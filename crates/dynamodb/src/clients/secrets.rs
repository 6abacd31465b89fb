//! Signing secrets: read by senders, replaced by rotation.

use antumbra_service::clients::{ClientError, ClientId, Rotation, Secrets};

use super::DynamoDbClients;
use super::item::{CURRENT, decode_secrets, secrets_key};
use crate::table::{Item, Outcome, Write};
use crate::value::{epoch_milliseconds, text, time};

impl DynamoDbClients {
    pub(super) async fn read_secrets(&self, id: &ClientId) -> Result<Secrets, ClientError> {
        decode(self.table.get(&secrets_key(id)).await?)
    }

    /// The condition makes rotation idempotent per request, also if the SDK repeats the call.
    pub(super) async fn rotate_secrets(
        &self,
        id: &ClientId,
        rotation: &Rotation,
    ) -> Result<Secrets, ClientError> {
        let rotate = Write::update(
            secrets_key(id),
            "SET #previous = #current, #previousUntil = :previousUntil, #current = :secret, \
             #requestedBy = :by, #requestedUntil = :until",
        )
        .condition(
            "attribute_exists(#current) AND (attribute_not_exists(#requestedBy) \
             OR #requestedBy <> :by OR #requestedUntil <= :now)",
        )
        .value(":secret", text(rotation.secret.reveal()))
        .value(":previousUntil", time(rotation.previous_until))
        .value(":by", text(&rotation.requested.by))
        .value(":until", epoch_milliseconds(rotation.requested.until))
        .value(":now", epoch_milliseconds(rotation.now))
        .returning_new();
        match self.table.write(rotate).await? {
            Outcome::Applied(stored) => decode(Some(stored)),
            Outcome::Refused(refusal) => decode(refusal.stored),
        }
    }
}

fn decode(item: Option<Item>) -> Result<Secrets, ClientError> {
    match item.filter(|item| item.contains_key(CURRENT)) {
        Some(item) => Ok(decode_secrets(item)?),
        None => Err(ClientError::NotFound),
    }
}
