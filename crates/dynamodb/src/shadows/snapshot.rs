//! Reads of both documents as they stood at one instant: a transaction that reads.
//!
//! DynamoDB cancels such a transaction as a whole, for one shadow that is being written or for the
//! size of them all. Shadows are independent of each other, so whoever is not at fault is read again
//! without those who are.

use antumbra_service::backoff;
use antumbra_service::shadows::{DocumentSet, Layout, ShadowId, StoreError};
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::transact_get_items::{
    TransactGetItemsError, TransactGetItemsOutput,
};
use aws_sdk_dynamodb::types::{Get, TransactGetItem};
use futures_util::stream::{self, StreamExt};

use super::DynamoDbShadows;
use super::keys::{Key, Kind};
use super::read::Found;
use crate::errors::{self, Cancelled};

/// Items in one transaction.
const TRANSACTION_ITEMS: usize = 100;
const OPERATION: &str = "TransactGetItems";

/// Shadows to be read in one transaction.
struct Group<'a> {
    shadows: Vec<&'a ShadowId>,
    /// How often these were at fault.
    failures: u32,
}

impl DynamoDbShadows {
    pub(super) async fn get_snapshots(&self, shadows: &[&ShadowId]) -> Found {
        let calls: Vec<_> = shadows
            .chunks(TRANSACTION_ITEMS / kinds().len())
            .map(|chunk| self.get_chunk(chunk))
            .collect();
        let found = stream::iter(calls).buffer_unordered(self.config.fan_out.get());
        found.flat_map(stream::iter).collect().await
    }

    async fn get_chunk(&self, shadows: &[&ShadowId]) -> Found {
        let mut found = Found::new();
        let mut groups = vec![Group {
            shadows: shadows.to_vec(),
            failures: 0,
        }];
        while let Some(group) = groups.pop() {
            if group.failures > 0 {
                let wait = backoff::delay(group.failures, fastrand::f64());
                tokio::time::sleep(wait).await;
            }
            match self.call_group(&group).await {
                Ok(output) => {
                    let items = output.responses.unwrap_or_default();
                    let items = items.into_iter().map(|response| Ok(response.item));
                    found.extend(group.keys().zip(items));
                }
                Err(error) => match self.divide(group, &error) {
                    Divided::Again(smaller) => groups.extend(smaller),
                    Divided::Failed(group, error) => {
                        found.extend(group.keys().map(|key| (key, Err(error.clone()))));
                    }
                },
            }
        }
        found
    }

    /// Who is to be read again after a failure, and with whom.
    fn divide<'a>(&self, group: Group<'a>, error: &SdkError<TransactGetItemsError>) -> Divided<'a> {
        let cancelled = match error.as_service_error() {
            Some(TransactGetItemsError::TransactionCanceledException(cancelled)) => cancelled,
            Some(failed) if failed.meta().code() == Some("ValidationException") => {
                return group.halve(errors::of_call(OPERATION, error, 0).into());
            }
            _ => return Divided::Failed(group, errors::of_call(OPERATION, error, 0).into()),
        };
        let reasons = cancelled.cancellation_reasons();
        let error: StoreError = match errors::of_reasons(OPERATION, reasons, 0) {
            Cancelled::Other(error) => error,
            Cancelled::Condition(..) => errors::of_call(OPERATION, error, 0),
        }
        .into();
        if !error.is_retryable() {
            return group.halve(error);
        }
        let mut reasons = reasons.chunks(kinds().len());
        let (at_fault, others): (Vec<_>, Vec<_>) = group.shadows.iter().partition(|_| {
            let reasons = reasons.next().unwrap_or_default();
            reasons.iter().any(errors::is_fault)
        });
        let failures = group.failures + 1;
        if at_fault.is_empty() || (others.is_empty() && failures >= self.config.read_attempts) {
            return Divided::Failed(group, error);
        }
        let mut groups = vec![Group {
            shadows: at_fault,
            failures,
        }];
        if !others.is_empty() {
            // Taken first, as the last of the groups.
            groups.push(Group {
                shadows: others,
                failures: 0,
            });
        }
        Divided::Again(groups)
    }

    async fn call_group(
        &self,
        group: &Group<'_>,
    ) -> Result<TransactGetItemsOutput, SdkError<TransactGetItemsError>> {
        let mut call = self.client.transact_get_items();
        for key in group.keys() {
            let get = Get::builder()
                .table_name(&self.config.table)
                .set_key(Some(key.attributes()))
                .build()
                .map_err(SdkError::construction_failure)?;
            call = call.transact_items(TransactGetItem::builder().get(get).build());
        }
        call.send().await
    }
}

enum Divided<'a> {
    Again(Vec<Group<'a>>),
    Failed(Group<'a>, StoreError),
}

impl<'a> Group<'a> {
    fn keys(&self) -> impl Iterator<Item = Key> + '_ {
        let shadows = self.shadows.iter();
        shadows.flat_map(|shadow| kinds().iter().map(|kind| Key::new(shadow, *kind)))
    }

    /// What is refused as a whole may be too large as a whole.
    fn halve(mut self, error: StoreError) -> Divided<'a> {
        if self.shadows.len() < 2 {
            return Divided::Failed(self, error);
        }
        let half = Group {
            shadows: self.shadows.split_off(self.shadows.len() / 2),
            failures: 0,
        };
        Divided::Again(vec![self, half])
    }
}

/// Only documents that lie apart need a transaction.
fn kinds() -> &'static [Kind] {
    Kind::of(Layout::Separate, DocumentSet::Both)
}
