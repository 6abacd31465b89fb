//! Writing down what a turn came to: one update, whoever else writes at the same time.

use antumbra_service::clients::ClientId;
use antumbra_service::deliveries::{Attempt, Delivery, DeliveryContext, DeliveryStore, Status};
use antumbra_service::store::StoreError;
use antumbra_shadow::Timestamp;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnValuesOnConditionCheckFailure};

use super::DynamoDbDeliveries;
use super::item::{self, ATTEMPTS, DELIVERED_ROUND, ROUND, STATUS, TTL, UPDATED, expiry, fixed};
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
    /// Status and attempts.
    All,
    /// The attempts alone: a later round, or a success, has the status.
    Attempts,
}

impl DeliveryStore for DynamoDbDeliveries {
    async fn standing(&self, delivery: &Delivery) -> Result<DeliveryContext, StoreError> {
        self.read_standing(delivery).await
    }

    async fn record(
        &self,
        delivery: &Delivery,
        status: Status,
        attempts: &[Attempt],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let attempts: Vec<AttributeValue> = attempts.iter().map(item::attempt).collect();
        let mut extent = Extent::All;
        let mut full: Option<Vec<AttributeValue>> = None;
        for _ in 0..TRIES {
            if extent == Extent::Attempts && attempts.is_empty() {
                return Ok(());
            }
            let written = Written {
                delivery,
                status,
                attempts: &attempts,
                now,
            };
            let stored = match self.write(&written, extent, full.take()).await? {
                Updated::Done(_) => return Ok(()),
                Updated::Refused(None) => continue,
                Updated::Refused(Some(stored)) => stored,
            };
            let kept = item::attempts(&stored);
            // An attempt of the SDK whose answer was lost has written it.
            if attempts.last().is_some_and(|newest| kept.contains(newest)) {
                return Ok(());
            }
            if !decides(&stored, delivery.round, status)? {
                extent = Extent::Attempts;
            }
            let too_many = (kept.len() + attempts.len()).saturating_sub(ATTEMPTS_KEPT);
            if too_many > 0 {
                full = Some(kept[too_many.min(kept.len())..].to_vec());
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
    attempts: &'a [AttributeValue],
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
            attempts,
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
        if let Some(newest) = attempts.last() {
            update = update.expression_attribute_names("#attempts", ATTEMPTS);
            let room = n(ATTEMPTS_KEPT.saturating_sub(attempts.len()));
            if let Some(mut rest) = rest {
                rest.extend_from_slice(attempts);
                set.push("#attempts = :attempts".to_owned());
                conditions.push("size(#attempts) > :room");
                update = update
                    .expression_attribute_values(":attempts", AttributeValue::L(rest))
                    .expression_attribute_values(":room", room);
            } else {
                set.push(
                    "#attempts = list_append(if_not_exists(#attempts, :none), :attempts)"
                        .to_owned(),
                );
                conditions.push(
                    "(attribute_not_exists(#attempts) OR \
                     (size(#attempts) <= :room AND NOT contains(#attempts, :newest)))",
                );
                let more = AttributeValue::L(attempts.to_vec());
                update = update
                    .expression_attribute_values(":none", AttributeValue::L(Vec::new()))
                    .expression_attribute_values(":attempts", more)
                    .expression_attribute_values(":newest", newest.clone())
                    .expression_attribute_values(":room", room);
            }
        }
        update = update.update_expression(format!("SET {}", set.join(", ")));
        if !conditions.is_empty() {
            update = update.condition_expression(conditions.join(" AND "));
        }
        outcome(update.send().await)
    }
}
