//! Changes of items: one alone is a call of its own, more are a transaction.

use antumbra_service::shadows::{PersistenceError, Version};
use aws_sdk_dynamodb::error::{BuildError, ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::delete_item::DeleteItemError;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{
    AttributeValue, Delete as TransactDelete, Put as TransactPut,
    ReturnValuesOnConditionCheckFailure, TransactWriteItem,
};

use super::DynamoDbShadows;
use super::item::{self, Item, VERSION};
use super::keys::{Key, Kind, PARTITION_KEY};
use crate::attempts::Attempts;
use crate::errors::{self, Cancelled};

const OLD_ITEM: ReturnValuesOnConditionCheckFailure = ReturnValuesOnConditionCheckFailure::AllOld;
const VERSION_NAME: &str = "#version";
const EXPECTED_VALUE: &str = ":expected";

/// One item to change.
#[derive(Debug, Clone)]
pub(super) enum Change {
    /// Put this in place of what has the expected version.
    Put {
        item: Item,
        kind: Kind,
        expected: Version,
        /// Its size, to be told if DynamoDB finds it too large.
        bytes: usize,
    },
    /// Take away what is there, if it has the expected version where one is given.
    Delete { key: Key, expected: Option<Version> },
}

impl Change {
    /// The condition under which it takes place.
    fn condition(&self) -> Option<String> {
        match self {
            Change::Put {
                expected: Version::NONE,
                ..
            } => Some(format!("attribute_not_exists({PARTITION_KEY})")),
            Change::Put { .. }
            | Change::Delete {
                expected: Some(_), ..
            } => Some(format!("{VERSION_NAME} = {EXPECTED_VALUE}")),
            Change::Delete { expected: None, .. } => None,
        }
    }

    /// The version its condition speaks of.
    fn expected(&self) -> Option<AttributeValue> {
        let version = match self {
            Change::Put { expected, .. } => (*expected != Version::NONE).then_some(*expected),
            Change::Delete { expected, .. } => *expected,
        };
        version.map(|version| AttributeValue::N(version.to_string()))
    }

    /// What it means that the condition failed, given what is stored.
    fn refused(&self, stored: Option<&Item>) -> PersistenceError {
        let actual = stored.and_then(item::version);
        match *self {
            Change::Delete { .. } if stored.is_none() => PersistenceError::NotFound,
            Change::Put { expected, .. } => PersistenceError::Conflict { expected, actual },
            Change::Delete { expected, .. } => PersistenceError::Conflict {
                expected: expected.unwrap_or_default(),
                actual,
            },
        }
    }

    /// Whether what is stored is what this change would have made of it.
    fn took_place(&self, stored: Option<&Item>) -> bool {
        match (self, stored) {
            (Change::Delete { .. }, stored) => stored.is_none(),
            (Change::Put { .. }, None) => false,
            (Change::Put { item, kind, .. }, Some(stored)) => {
                let [ours, stored] = [item, stored].map(|item| item::decode(item, *kind));
                ours.is_ok() && ours == stored
            }
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Change::Put { bytes, .. } => *bytes,
            Change::Delete { .. } => 0,
        }
    }

    fn into_transaction(self, table: &str) -> Result<TransactWriteItem, BuildError> {
        let condition = self.condition();
        let expected = self.expected();
        let names = expected
            .is_some()
            .then(|| [(VERSION_NAME.to_owned(), VERSION.to_owned())].into());
        let values = expected.map(|expected| [(EXPECTED_VALUE.to_owned(), expected)].into());
        let builder = TransactWriteItem::builder();
        Ok(match self {
            Change::Put { item, .. } => builder.put(
                TransactPut::builder()
                    .table_name(table)
                    .set_item(Some(item))
                    .set_condition_expression(condition)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values)
                    .return_values_on_condition_check_failure(OLD_ITEM)
                    .build()?,
            ),
            Change::Delete { key, .. } => builder.delete(
                TransactDelete::builder()
                    .table_name(table)
                    .set_key(Some(key.attributes()))
                    .set_condition_expression(condition)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values)
                    .return_values_on_condition_check_failure(OLD_ITEM)
                    .build()?,
            ),
        }
        .build())
    }
}

impl DynamoDbShadows {
    /// Makes all of the changes or none.
    pub(super) async fn apply(&self, mut changes: Vec<Change>) -> Result<(), PersistenceError> {
        match changes.pop() {
            None => Ok(()),
            Some(only) if changes.is_empty() => self.apply_one(only).await,
            Some(last) => {
                changes.push(last);
                self.transact(changes).await
            }
        }
    }

    async fn apply_one(&self, change: Change) -> Result<(), PersistenceError> {
        let attempts = Attempts::default();
        match &change {
            Change::Put { item, .. } => {
                let mut call = self.client.put_item().table_name(&self.config.table);
                if let Some(expected) = change.expected() {
                    call = call
                        .expression_attribute_names(VERSION_NAME, VERSION)
                        .expression_attribute_values(EXPECTED_VALUE, expected);
                }
                let sent = call
                    .set_item(Some(item.clone()))
                    .set_condition_expression(change.condition())
                    .return_values_on_condition_check_failure(OLD_ITEM)
                    .customize()
                    .interceptor(attempts.clone())
                    .send()
                    .await;
                let Err(error) = sent else { return Ok(()) };
                let stored = match error.as_service_error() {
                    Some(PutItemError::ConditionalCheckFailedException(failed)) => {
                        Some(failed.item())
                    }
                    _ => None,
                };
                settle("PutItem", &change, &attempts, &error, stored)
            }
            Change::Delete { key, .. } => {
                let mut call = self.client.delete_item().table_name(&self.config.table);
                if let Some(expected) = change.expected() {
                    call = call
                        .expression_attribute_names(VERSION_NAME, VERSION)
                        .expression_attribute_values(EXPECTED_VALUE, expected)
                        .return_values_on_condition_check_failure(OLD_ITEM);
                }
                let sent = call
                    .set_key(Some(key.attributes()))
                    .set_condition_expression(change.condition())
                    .customize()
                    .interceptor(attempts.clone())
                    .send()
                    .await;
                let Err(error) = sent else { return Ok(()) };
                let stored = match error.as_service_error() {
                    Some(DeleteItemError::ConditionalCheckFailedException(failed)) => {
                        Some(failed.item())
                    }
                    _ => None,
                };
                settle("DeleteItem", &change, &attempts, &error, stored)
            }
        }
    }

    /// The SDK gives each transaction a token of its own, so that one tried again is not made twice,
    /// and a condition that fails did not fail for an earlier attempt.
    async fn transact(&self, changes: Vec<Change>) -> Result<(), PersistenceError> {
        const OPERATION: &str = "TransactWriteItems";
        let attempts = Attempts::default();
        let bytes = changes.iter().map(Change::bytes).max().unwrap_or(0);
        let items: Result<Vec<_>, _> = changes
            .iter()
            .map(|change| change.clone().into_transaction(&self.config.table))
            .collect();
        let items = items.map_err(|error| PersistenceError::Invalid(error.to_string()))?;
        let sent = self
            .client
            .transact_write_items()
            .set_transact_items(Some(items))
            .customize()
            .interceptor(attempts.clone())
            .send()
            .await;
        let Err(error) = sent else { return Ok(()) };
        if let Some(TransactWriteItemsError::TransactionCanceledException(cancelled)) =
            error.as_service_error()
        {
            let reasons = cancelled.cancellation_reasons();
            return match errors::of_reasons(OPERATION, reasons, bytes) {
                Cancelled::Condition(at, reason) => Err(match changes.get(at) {
                    Some(change) => change.refused(reason.item()),
                    None => errors::of_call(OPERATION, &error, bytes).into(),
                }),
                Cancelled::Other(error) => Err(in_doubt(error, &attempts)),
            };
        }
        Err(in_doubt(
            errors::of_call(OPERATION, &error, bytes),
            &attempts,
        ))
    }
}

/// What a failed call of one change comes to. `stored` is there if its condition failed.
fn settle<E: ProvideErrorMetadata>(
    operation: &'static str,
    change: &Change,
    attempts: &Attempts,
    error: &SdkError<E>,
    stored: Option<Option<&Item>>,
) -> Result<(), PersistenceError> {
    match stored {
        // The answer to an earlier attempt was lost, and this one met what that one had done.
        Some(stored) if attempts.doubtful() && change.took_place(stored) => Ok(()),
        Some(stored) => Err(in_doubt(change.refused(stored), attempts)),
        None => {
            let error = errors::of_call(operation, error, change.bytes());
            Err(in_doubt(error, attempts))
        }
    }
}

/// After an attempt whose answer was lost, only `Unavailable` promises nothing.
fn in_doubt(error: impl Into<PersistenceError>, attempts: &Attempts) -> PersistenceError {
    match error.into() {
        error @ PersistenceError::Unavailable(_) => error,
        error if attempts.doubtful() => PersistenceError::Unavailable(format!(
            "an earlier attempt got no answer, the last one: {error}"
        )),
        error => error,
    }
}
