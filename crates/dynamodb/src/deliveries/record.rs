//! Records the result of a delivery attempt: one update, also with other writers at the same time.

use antumbra_service::clients::ClientId;
use antumbra_service::deliveries::{Attempt, Delivery, DeliveryContext, DeliveryStore, Status};
use antumbra_service::store::StoreError;
use antumbra_shadow::Timestamp;
use aws_sdk_dynamodb::types::AttributeValue;

use super::DynamoDbDeliveries;
use super::item::{
    DELIVERED_ROUND, ROUND, attributes, encode_attempt, key, stored_attempts, times,
};
use crate::table::{Item, Outcome, Write};
use crate::value::{number, optional_number};

/// Attempts that the record of one delivery keeps.
const ATTEMPTS_KEPT: usize = 50;
/// Updates tried while other writers change the record.
const UPDATE_ATTEMPTS: u32 = 5;

impl DeliveryStore for DynamoDbDeliveries {
    async fn context(&self, delivery: &Delivery) -> Result<DeliveryContext, StoreError> {
        self.read_context(delivery).await
    }

    async fn record(
        &self,
        delivery: &Delivery,
        status: Status,
        attempts: &[Attempt],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let attempts = attempts.iter().map(encode_attempt);
        let mut record = AttemptRecord {
            delivery,
            status: Some(status),
            attempts: attempts.collect::<Result<_, _>>()?,
            kept: None,
            now,
        };
        for _ in 0..UPDATE_ATTEMPTS {
            if record.status.is_none() && record.attempts.is_empty() {
                return Ok(());
            }
            let stored = match self.table.write(self.update(&record)?).await? {
                Outcome::Applied(_) => return Ok(()),
                Outcome::Refused(refusal) => refusal.stored,
            };
            record.kept = None;
            let Some(stored) = stored else { continue };
            let stored_attempts = stored_attempts(&stored);
            let newest = record.attempts.last();
            // An attempt of the SDK whose response was lost has recorded it.
            if newest.is_some_and(|newest| stored_attempts.contains(newest)) {
                return Ok(());
            }
            if !decides(&stored, delivery.round, status)? {
                record.status = None;
            }
            let all = stored_attempts.len() + record.attempts.len();
            let surplus = all.saturating_sub(ATTEMPTS_KEPT);
            if surplus > 0 {
                let from = surplus.min(stored_attempts.len());
                record.kept = Some(stored_attempts[from..].to_vec());
            }
        }
        Err(StoreError::Throttled)
    }

    async fn record_failure(
        &self,
        client: &ClientId,
        weight: u32,
        open_until: Option<Timestamp>,
    ) -> Result<(), StoreError> {
        self.add_failure(client, weight, open_until).await
    }

    async fn record_success(&self, client: &ClientId) -> Result<(), StoreError> {
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

/// A result to record.
struct AttemptRecord<'a> {
    delivery: &'a Delivery,
    /// `None` if a later round or a success decides the status.
    status: Option<Status>,
    attempts: Vec<AttributeValue>,
    /// Earlier attempts to keep if the stored list is full.
    kept: Option<Vec<AttributeValue>>,
    now: Timestamp,
}

/// Returns whether a result of this round still decides the status of the delivery.
fn decides(stored: &Item, round: u32, status: Status) -> Result<bool, StoreError> {
    let stored_round: Option<u32> = optional_number(stored, ROUND)?;
    let delivered: Option<u32> = optional_number(stored, DELIVERED_ROUND)?;
    let later = stored_round.is_some_and(|stored| stored > round);
    let done = delivered.is_some_and(|delivered| delivered >= round);
    Ok(!done && (status == Status::Delivered || !later))
}

impl DynamoDbDeliveries {
    fn update(&self, record: &AttemptRecord<'_>) -> Result<Write, StoreError> {
        let delivery = record.delivery;
        let expires_at = record.now.after(self.retention);
        let mut conditions = Vec::new();
        let mut set = match record.status {
            Some(status) => attributes(delivery, status, record.now, expires_at)?,
            None => times(record.now, expires_at),
        };
        if let Some(status) = record.status {
            conditions.push("(attribute_not_exists(#deliveredRound) OR #deliveredRound < :round)");
            if status == Status::Delivered {
                set.insert(DELIVERED_ROUND.to_owned(), number(delivery.round));
            } else {
                conditions.push("(attribute_not_exists(#round) OR #round <= :round)");
            }
        }
        let mut also = Vec::new();
        let mut values = Vec::new();
        if let Some(newest) = record.attempts.last() {
            let room = ATTEMPTS_KEPT.saturating_sub(record.attempts.len());
            values.push((":room", number(room)));
            let mut list = record.kept.clone().unwrap_or_default();
            list.extend_from_slice(&record.attempts);
            values.push((":attempts", AttributeValue::L(list)));
            if record.kept.is_some() {
                also.push("#attempts = :attempts");
                conditions.push("size(#attempts) > :room");
            } else {
                also.push("#attempts = list_append(if_not_exists(#attempts, :none), :attempts)");
                conditions.push(
                    "(attribute_not_exists(#attempts) OR \
                     (size(#attempts) <= :room AND NOT contains(#attempts, :newest)))",
                );
                values.push((":none", AttributeValue::L(Vec::new())));
                values.push((":newest", newest.clone()));
            }
        }
        let mut write = Write::set(key(&delivery.id), set, &also);
        if !conditions.is_empty() {
            write = write.condition(conditions.join(" AND "));
        }
        for (name, value) in values {
            write = write.value(name, value);
        }
        Ok(write)
    }
}
