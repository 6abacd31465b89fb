//! The circuit of a client, in the client's item. These updates leave the client's version alone and do
//! nothing if the client is gone.

use antumbra_service::clients::ClientId;
use antumbra_service::store::StoreError;
use antumbra_shadow::Timestamp;

use super::DynamoDbDeliveries;
use crate::clients::item::{DISABLED, ENABLED, client_key};
use crate::table::{Outcome, Write};
use crate::value::{epoch_milliseconds, number, text, time};

const EXISTS: &str = "attribute_exists(#PK)";

impl DynamoDbDeliveries {
    pub(super) async fn add_failure(
        &self,
        client: &ClientId,
        weight: u32,
        open_until: Option<Timestamp>,
    ) -> Result<(), StoreError> {
        let key = client_key(client);
        let update = match open_until {
            None => Write::update(key, "ADD #failures :weight"),
            Some(until) => Write::update(key, "ADD #failures :weight SET #openUntil = :until")
                .value(":until", epoch_milliseconds(until)),
        };
        let update = update.condition(EXISTS).value(":weight", number(weight));
        self.table.write(update).await.map(drop)
    }

    pub(super) async fn close_circuit(&self, client: &ClientId) -> Result<(), StoreError> {
        let update = "SET #failures = :none REMOVE #openUntil";
        let update = Write::update(client_key(client), update)
            .condition(EXISTS)
            .value(":none", number(0));
        self.table.write(update).await.map(drop)
    }

    pub(super) async fn take_probe(
        &self,
        client: &ClientId,
        seen: Option<Timestamp>,
        until: Timestamp,
    ) -> Result<bool, StoreError> {
        let update = Write::update(client_key(client), "SET #openUntil = :until")
            .value(":until", epoch_milliseconds(until));
        let update = match seen {
            None => update.condition(format!("{EXISTS} AND attribute_not_exists(#openUntil)")),
            Some(seen) => update
                .condition(format!("{EXISTS} AND #openUntil = :seen"))
                .value(":seen", epoch_milliseconds(seen)),
        };
        let outcome = self.table.write(update).await?;
        Ok(matches!(outcome, Outcome::Applied(_)))
    }

    pub(super) async fn disable_client(
        &self,
        client: &ClientId,
        reason: &str,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let update = "SET #state = :disabled, #reason = :reason, #since = :now, #updated = :now, \
             #version = #version + :one";
        let update = Write::update(client_key(client), update)
            .condition(format!("{EXISTS} AND #state = :enabled"))
            .value(":enabled", text(ENABLED))
            .value(":disabled", text(DISABLED))
            .value(":reason", text(reason))
            .value(":now", time(now))
            .value(":one", number(1));
        self.table.write(update).await.map(drop)
    }
}
