//! The store of deliveries: claims, results of attempts, and the circuit of a client.
//!
//! The circuit is in the client's item. Its updates leave the client's version alone and do nothing if the client is gone.

use antumbra_service::clients::{Client, ClientId, ClientState};
use antumbra_service::deliveries::{
    Claim, DeliveryContext, DeliveryMessage, DeliveryStore, Saved, Status, Transition,
};
use antumbra_service::store::StoreError;
use antumbra_shadow::Timestamp;

use super::DynamoDbDeliveries;
use super::item::decode;
use super::record::{
    CLAIM, Chain, NOT_DELIVERED, RecordUpdate, UNCHANGED, add_attempts, is_claimed_by, is_later,
    new_attempts, seen,
};
use crate::clients::item::{DISABLED, ENABLED, client_key, decode_client};
use crate::table::{EXISTS, Outcome, Write};
use crate::value::{epoch_milliseconds, number, text, time};

/// Writes tried while other deliveries of the same client and sensor are deferred.
const SAVES: u32 = 5;

impl DeliveryStore for DynamoDbDeliveries {
    async fn context(&self, message: &DeliveryMessage) -> Result<DeliveryContext, StoreError> {
        self.read_context(message).await
    }

    async fn claim(&self, claim: &Claim<'_>) -> Result<bool, StoreError> {
        let Claim {
            record, message, ..
        } = claim;
        let mut change = RecordUpdate::new(record, message);
        change.set("begun", number(claim.attempt));
        change.set(CLAIM, text(claim.token));
        change.set("claimedUntil", epoch_milliseconds(claim.until));
        change.set("updated", time(claim.now));
        if message.round > record.progress.round {
            change.set("status", text(Status::Pending.as_str()));
        }
        if let Some(interrupted) = &claim.interrupted {
            change.attempts(record, std::slice::from_ref(interrupted))?;
        }
        change.remove(&["waiting", "notBefore", "ttl"]);
        let write = change.write().condition(UNCHANGED);
        match self.table.write(seen(write, record, claim.now)).await? {
            Outcome::Applied(_) => Ok(true),
            // An attempt of the SDK whose response was lost has claimed it.
            Outcome::Refused(refusal) => Ok(is_claimed_by(&refusal, claim.token)),
        }
    }

    async fn save(&self, transition: &Transition<'_>) -> Result<Saved, StoreError> {
        let mut record = transition.record.clone();
        let mut chain = Chain::of(transition.context);
        let mut condition = match transition.claim {
            Some(_) => "#claim = :claim",
            None => UNCHANGED,
        };
        let mut only_attempts = false;
        for _ in 0..SAVES {
            let (mut writes, next) = match only_attempts {
                true => (vec![add_attempts(transition, &record)?], None),
                false => self.writes(transition, &record, chain, condition).await?,
            };
            let outcome = match writes.len() {
                1 => self.table.write(writes.remove(0)).await?,
                _ => self.table.transact(writes).await?,
            };
            let refusal = match outcome {
                Outcome::Applied(_) if only_attempts => return Ok(Saved::Changed),
                Outcome::Applied(_) => return Ok(Saved::Applied(next)),
                Outcome::Refused(refusal) => refusal,
            };
            if refusal.at > 0 {
                // Another delivery of the client and sensor was deferred or settled at the same time.
                if transition.wait.is_some() {
                    return Ok(Saved::Changed);
                }
                chain = Chain::of(&self.read_context(transition.message).await?);
                continue;
            }
            let Some(stored) = refusal.stored.clone() else {
                return Ok(Saved::Changed);
            };
            record = decode(stored)?;
            let newest = transition.attempts.last();
            let is_recorded = newest.is_some_and(|newest| record.attempts.contains(newest));
            if refusal.in_doubt && is_recorded && !only_attempts {
                return Ok(Saved::Applied(None));
            }
            if transition.status != Status::Delivered || condition == NOT_DELIVERED {
                // A later round removed the claim. The history still gets the attempt.
                only_attempts = is_later(transition, &record)
                    && new_attempts(transition, &record).next().is_some();
                if !only_attempts {
                    return Ok(Saved::Changed);
                }
                continue;
            }
            condition = NOT_DELIVERED;
        }
        Err(StoreError::Throttled)
    }

    async fn record_failure(
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

    async fn record_success(&self, client: &ClientId) -> Result<(), StoreError> {
        let update = "SET #failures = :none REMOVE #openUntil, #probingSince, #failingSince";
        let update = Write::update(client_key(client), update)
            .condition(EXISTS)
            .value(":none", number(0));
        self.table.write(update).await.map(drop)
    }

    async fn claim_probe(
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

    async fn disable(
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
