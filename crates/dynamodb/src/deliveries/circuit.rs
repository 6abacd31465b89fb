//! The circuit of a client, in the client's item. These updates leave the client's version alone and do
//! nothing if the client is gone.

use antumbra_service::clients::{Client, ClientId, ClientState};
use antumbra_service::store::StoreError;
use antumbra_shadow::Timestamp;

use super::DynamoDbDeliveries;
use crate::clients::item::{DISABLED, ENABLED, client_key, decode_client};
use crate::table::{Outcome, Write};
use crate::value::{epoch_milliseconds, number, text, time};

const EXISTS: &str = "attribute_exists(#PK)";

impl DynamoDbDeliveries {
    pub(super) async fn add_failure(
        &self,
        client: &ClientId,
        weight: u32,
        open_until: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let key = client_key(client);
        let update = "ADD #failures :weight SET #failingSince = if_not_exists(#failingSince, :now)";
        let update = match open_until {
            None => Write::update(key, update),
            Some(until) => {
                let update = format!("{update}, #openUntil = :until REMOVE #probingSince");
                Write::update(key, update).value(":until", epoch_milliseconds(until))
            }
        };
        let update = update
            .condition(EXISTS)
            .value(":weight", number(weight))
            .value(":now", epoch_milliseconds(now));
        self.table.write(update).await.map(drop)
    }

    pub(super) async fn close_circuit(&self, client: &ClientId) -> Result<(), StoreError> {
        let update = "SET #failures = :none REMOVE #openUntil, #probingSince, #failingSince";
        let update = Write::update(client_key(client), update)
            .condition(EXISTS)
            .value(":none", number(0));
        self.table.write(update).await.map(drop)
    }

    pub(super) async fn take_probe(
        &self,
        client: &ClientId,
        seen: Option<Timestamp>,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<bool, StoreError> {
        let update = "SET #openUntil = :until, #probingSince = :now";
        let update = Write::update(client_key(client), update)
            .value(":until", epoch_milliseconds(until))
            .value(":now", epoch_milliseconds(now));
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
        client: &Client,
        reason: &str,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let update = "SET #state = :disabled, #reason = :reason, #since = :now, #updated = :now, \
             #version = #version + :one";
        let update = Write::update(client_key(&client.id), update)
            .condition(format!("{EXISTS} AND #state = :enabled AND #url = :url"))
            .value(":enabled", text(ENABLED))
            .value(":disabled", text(DISABLED))
            .value(":url", text(&client.url))
            .value(":reason", text(reason))
            .value(":now", time(now))
            .value(":one", number(1));
        Ok(match self.table.write(update).await? {
            Outcome::Applied(_) => true,
            Outcome::Refused(refusal) => {
                let stored = refusal.stored.map(decode_client).transpose()?;
                stored.is_some_and(|stored| stored.state != ClientState::Enabled)
            }
        })
    }
}
