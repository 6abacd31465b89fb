//! Writing down what a turn came to: one update, whoever else writes at the same time.

use antumbra_service::clients::ClientId;
use antumbra_service::deliveries::{Attempt, Delivery, Ledger, Standing, Status};
use antumbra_service::store::StoreError;
use antumbra_shadow::Timestamp;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnValuesOnConditionCheckFailure};

use super::DynamoDbDeliveries;
use super::item::{
    self, ATTEMPTS, DELIVERED_ROUND, ROUND, STATUS, TTL, UPDATED, attempts, expiry, fixed,
};
use crate::clients::item::{n, optional_number, s, time};
use crate::clients::keys::{self, Item, key};
use crate::clients::update::{Updated, outcome};

/// Attempts that are kept of one delivery.
const ATTEMPTS_KEPT: usize = 50;
/// How often it is tried against other writers.
const TRIES: u32 = 5;

/// How much of a turn is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// Status and attempt.
    All,
    /// The attempt alone: a later round, or a success, has the status.
    Attempt,
}

impl Ledger for DynamoDbDeliveries {
    async fn standing(&self, delivery: &Delivery) -> Result<Standing, StoreError> {
        self.read_standing(delivery).await
    }

    async fn record(
        &self,
        delivery: &Delivery,
        status: Status,
        attempt: Option<&Attempt>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let attempt = attempt.map(item::attempt);
        let mut extent = Extent::All;
        let mut full: Option<Vec<AttributeValue>> = None;
        for _ in 0..TRIES {
            if extent == Extent::Attempt && attempt.is_none() {
                return Ok(());
            }
            let written = Written {
                delivery,
                status,
                attempt: attempt.as_ref(),
                now,
            };
            let stored = match self.write(&written, extent, full.take()).await? {
                Updated::Done(_) => return Ok(()),
                Updated::Refused(None) => continue,
                Updated::Refused(Some(stored)) => stored,
            };
            let kept = attempts(&stored);
            // An attempt of the SDK whose answer was lost has written it.
            if attempt
                .as_ref()
                .is_some_and(|attempt| kept.contains(attempt))
            {
                return Ok(());
            }
            if !decides(&stored, delivery.round, status)? {
                extent = Extent::Attempt;
            }
            if kept.len() >= ATTEMPTS_KEPT {
                full = Some(kept[kept.len() - ATTEMPTS_KEPT + 1..].to_vec());
            }
        }
        Err(StoreError::Throttled)
    }

    async fn note_failure(
        &self,
        client: &ClientId,
        weight: u32,
        open_until: Option<Timestamp>,
    ) -> Result<(), StoreError> {
        self.add_failure(client, weight, open_until).await
    }

    async fn note_success(&self, client: &ClientId) -> Result<(), StoreError> {
        self.close_circuit(client).await
    }

    async fn claim_probe(
        &self,
        client: &ClientId,
        seen: Option<Timestamp>,
        until: Timestamp,
    ) -> Result<bool, StoreError> {
        self.take_probe(client, seen, until).await
    }

    async fn disable(
        &self,
        client: &ClientId,
        reason: &str,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.disable_client(client, reason, now).await
    }
}

/// What is to be written.
struct Written<'a> {
    delivery: &'a Delivery,
    status: Status,
    attempt: Option<&'a AttributeValue>,
    now: Timestamp,
}

/// Whether a turn of this round may still say what the delivery has come to.
fn decides(stored: &Item, round: u32, status: Status) -> Result<bool, StoreError> {
    let stored_round: Option<u32> = optional_number(stored, ROUND)?;
    let delivered: Option<u32> = optional_number(stored, DELIVERED_ROUND)?;
    let later = stored_round.is_some_and(|stored| stored > round);
    let done = delivered.is_some_and(|delivered| delivered >= round);
    Ok(!done && (status == Status::Delivered || !later))
}

impl DynamoDbDeliveries {
    /// `rest` is what to keep of a list of attempts that is full.
    async fn write(
        &self,
        written: &Written<'_>,
        extent: Extent,
        rest: Option<Vec<AttributeValue>>,
    ) -> Result<Updated, StoreError> {
        let Written {
            delivery,
            status,
            attempt,
            now,
        } = *written;
        let mut set: Vec<String> = Vec::new();
        let mut conditions: Vec<&str> = Vec::new();
        let mut update = self
            .database
            .update_item()
            .table_name(&self.table)
            .set_key(Some(key(
                keys::client(delivery.id.client()),
                keys::delivery(&delivery.id),
            )))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let mut values = vec![(UPDATED, time(now)), (TTL, expiry(now, self.retention))];
        if extent == Extent::All {
            values.extend(fixed(delivery));
            values.extend([(STATUS, s(status.as_str())), (ROUND, n(delivery.round))]);
            if status == Status::Delivered {
                values.push((DELIVERED_ROUND, n(delivery.round)));
                conditions.push("(attribute_not_exists(#delivered) OR #delivered < :round)");
            } else {
                conditions.push("(attribute_not_exists(#delivered) OR #delivered < :round)");
                conditions.push("(attribute_not_exists(#round) OR #round <= :round)");
                update = update.expression_attribute_names("#round", ROUND);
            }
            update = update
                .expression_attribute_names("#delivered", DELIVERED_ROUND)
                .expression_attribute_values(":round", n(delivery.round));
        }
        for (place, (name, value)) in values.into_iter().enumerate() {
            set.push(format!("#a{place} = :a{place}"));
            update = update
                .expression_attribute_names(format!("#a{place}"), name)
                .expression_attribute_values(format!(":a{place}"), value);
        }
        if let Some(attempt) = attempt {
            update = update.expression_attribute_names("#attempts", ATTEMPTS);
            let kept = n(ATTEMPTS_KEPT);
            if let Some(mut rest) = rest {
                rest.push(attempt.clone());
                set.push("#attempts = :attempts".to_owned());
                conditions.push("size(#attempts) >= :kept");
                update = update
                    .expression_attribute_values(":attempts", AttributeValue::L(rest))
                    .expression_attribute_values(":kept", kept);
            } else {
                set.push(
                    "#attempts = list_append(if_not_exists(#attempts, :none), :attempts)"
                        .to_owned(),
                );
                conditions.push(
                    "(attribute_not_exists(#attempts) OR \
                     (size(#attempts) < :kept AND NOT contains(#attempts, :attempt)))",
                );
                let one = AttributeValue::L(vec![attempt.clone()]);
                update = update
                    .expression_attribute_values(":none", AttributeValue::L(Vec::new()))
                    .expression_attribute_values(":attempts", one)
                    .expression_attribute_values(":attempt", attempt.clone())
                    .expression_attribute_values(":kept", kept);
            }
        }
        update = update.update_expression(format!("SET {}", set.join(", ")));
        if !conditions.is_empty() {
            update = update.condition_expression(conditions.join(" AND "));
        }
        outcome(update.send().await)
    }
}
