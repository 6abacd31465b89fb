//! Changes of items: one alone is a call of its own, more are a transaction.
//!
//! A delete leaves the item's version behind for a while, so that what is created in its place goes on
//! from there. What is created is put where nothing is; only when a deleted one turns out to lie there is
//! it put in that one's place, at the cost of a second call.

use antumbra_service::shadows::{StoreError, Version};
use antumbra_shadow::Timestamp;
use aws_sdk_dynamodb::error::{BuildError, ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::{
    AttributeValue, ConditionCheck, Put as TransactPut, ReturnValuesOnConditionCheckFailure,
    TransactWriteItem, Update as TransactUpdate,
};

use super::DynamoDbShadows;
use super::expressions::{DELETE, Expressions};
use super::item::{self, Item, VERSION};
use super::keys::{Key, Kind};
use crate::attempts::AttemptTracker;
use crate::errors::{self, Cancelled};

const OLD_ITEM: ReturnValuesOnConditionCheckFailure = ReturnValuesOnConditionCheckFailure::AllOld;

/// One item to change, or to find as it is.
#[derive(Debug, Clone)]
pub(super) enum Change {
    /// Put this in place of what has the expected version.
    Put(Put),
    /// Take away what is there, if it has the expected version where one is given.
    Delete {
        key: Key,
        expected: Option<Version>,
        now: Timestamp,
    },
    /// Leave what is there alone, if it has the expected version.
    Hold { key: Key, expected: Version },
}

/// An item to put.
#[derive(Debug, Clone)]
pub(super) struct Put {
    pub(super) item: Item,
    pub(super) kind: Kind,
    pub(super) expected: Version,
    /// What is created has a version above this one.
    pub(super) floor: Version,
    /// The version of the deleted item in whose place it is put.
    pub(super) over: Option<Version>,
    pub(super) now: Timestamp,
    /// Its size, to be told if DynamoDB finds it too large.
    pub(super) bytes: usize,
}

impl Put {
    /// The version it is put with.
    pub(super) fn version(&self) -> Version {
        item::version(&self.item).unwrap_or_default()
    }

    /// The same in place of what a delete left.
    fn over(&self, deleted: &Item) -> Put {
        let before = item::goes_on_from(deleted, self.now).max(self.floor);
        let mut put = self.clone();
        let version = AttributeValue::N(before.next().to_string());
        put.item.insert(VERSION.to_owned(), version);
        put.over = Some(item::version(deleted).unwrap_or_default());
        put
    }
}

/// Why changes were not made.
pub(super) enum Refused {
    /// The one at this place is to be tried again as this one, or is none.
    Otherwise(usize, Option<Change>),
    /// There is nothing more to try.
    Finally(StoreError),
}

impl Change {
    fn expressions(&self) -> Expressions {
        match self {
            Change::Put(Put {
                expected: Version::NONE,
                over,
                ..
            }) => match over {
                None => Expressions::absent(),
                Some(version) => Expressions::deleted(*version),
            },
            Change::Put(Put { expected, .. }) => Expressions::there(Some(*expected)),
            Change::Delete { expected, now, .. } => Expressions::there(*expected).deleting(*now),
            Change::Hold {
                expected: Version::NONE,
                ..
            } => Expressions::not_there(),
            Change::Hold { expected, .. } => Expressions::there(Some(*expected)),
        }
    }

    /// What to try in its place now that its condition failed, given what is stored.
    fn otherwise(&self, stored: Option<&Item>) -> Option<Option<Change>> {
        let deleted = stored.filter(|item| item::is_deleted(item));
        match self {
            Change::Put(put) if put.expected == Version::NONE && put.over.is_none() => {
                deleted.map(|deleted| Some(Change::Put(put.over(deleted))))
            }
            Change::Delete { expected: None, .. } => Some(None),
            _ => None,
        }
    }

    /// What it means that the condition failed, given what is stored.
    fn refused(&self, stored: Option<&Item>) -> StoreError {
        let stored = stored.filter(|item| !item::is_deleted(item));
        let actual = stored.and_then(item::version);
        let expected = match self {
            Change::Delete { .. } if stored.is_none() => return StoreError::NotFound,
            Change::Delete { expected, .. } => expected.unwrap_or_default(),
            Change::Put(Put { expected, .. }) | Change::Hold { expected, .. } => *expected,
        };
        StoreError::Conflict { expected, actual }
    }

    /// Whether what is stored is what this change would have made of it.
    fn already_applied(&self, stored: Option<&Item>) -> bool {
        match (self, stored) {
            (Change::Delete { .. }, stored) => stored.is_none_or(item::is_deleted),
            (Change::Put(put), Some(stored)) => {
                let [ours, stored] = [&put.item, stored].map(|item| item::decode(item, put.kind));
                ours.is_ok() && ours == stored
            }
            _ => false,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Change::Put(put) => put.bytes,
            Change::Delete { .. } | Change::Hold { .. } => 0,
        }
    }

    fn into_transaction(self, table: &str) -> Result<TransactWriteItem, BuildError> {
        let Expressions {
            condition,
            names,
            values,
        } = self.expressions();
        let values = (!values.is_empty()).then_some(values);
        let names = (!names.is_empty()).then_some(names);
        let builder = TransactWriteItem::builder();
        Ok(match self {
            Change::Put(Put { item, .. }) => builder.put(
                TransactPut::builder()
                    .table_name(table)
                    .set_item(Some(item))
                    .condition_expression(condition)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values)
                    .return_values_on_condition_check_failure(OLD_ITEM)
                    .build()?,
            ),
            Change::Delete { key, .. } => builder.update(
                TransactUpdate::builder()
                    .table_name(table)
                    .set_key(Some(key.attributes()))
                    .update_expression(DELETE)
                    .condition_expression(condition)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values)
                    .return_values_on_condition_check_failure(OLD_ITEM)
                    .build()?,
            ),
            Change::Hold { key, .. } => builder.condition_check(
                ConditionCheck::builder()
                    .table_name(table)
                    .set_key(Some(key.attributes()))
                    .condition_expression(condition)
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
    /// Makes all of the changes or none, and gives back those that were made.
    pub(super) async fn apply(&self, mut changes: Vec<Change>) -> Result<Vec<Change>, StoreError> {
        // Each change can turn into another one once, so that this ends.
        loop {
            let applied = match &changes[..] {
                [] => Ok(()),
                [only] if !matches!(only, Change::Hold { .. }) => self.apply_one(only).await,
                all => self.transact(all).await,
            };
            match applied {
                Ok(()) => return Ok(changes),
                Err(Refused::Finally(error)) => return Err(error),
                Err(Refused::Otherwise(at, Some(change))) => changes[at] = change,
                Err(Refused::Otherwise(at, None)) => drop(changes.remove(at)),
            }
        }
    }

    async fn apply_one(&self, change: &Change) -> Result<(), Refused> {
        let attempts = AttemptTracker::default();
        let Expressions {
            condition,
            names,
            values,
        } = change.expressions();
        let names = (!names.is_empty()).then_some(names);
        let values = (!values.is_empty()).then_some(values);
        match change {
            Change::Put(Put { item, .. }) => {
                let sent = self
                    .client
                    .put_item()
                    .table_name(&self.config.table)
                    .set_item(Some(item.clone()))
                    .condition_expression(condition)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values)
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
                settle("PutItem", change, &attempts, &error, stored)
            }
            Change::Delete { key, .. } | Change::Hold { key, .. } => {
                let sent = self
                    .client
                    .update_item()
                    .table_name(&self.config.table)
                    .set_key(Some(key.attributes()))
                    .update_expression(DELETE)
                    .condition_expression(condition)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values)
                    .return_values_on_condition_check_failure(OLD_ITEM)
                    .customize()
                    .interceptor(attempts.clone())
                    .send()
                    .await;
                let Err(error) = sent else { return Ok(()) };
                let stored = match error.as_service_error() {
                    Some(UpdateItemError::ConditionalCheckFailedException(failed)) => {
                        Some(failed.item())
                    }
                    _ => None,
                };
                settle("UpdateItem", change, &attempts, &error, stored)
            }
        }
    }

    /// The SDK gives each transaction a token of its own, so that one tried again is not made twice,
    /// and a condition that fails did not fail for an earlier attempt.
    async fn transact(&self, changes: &[Change]) -> Result<(), Refused> {
        const OPERATION: &str = "TransactWriteItems";
        let attempts = AttemptTracker::default();
        let bytes = changes.iter().map(Change::bytes).max().unwrap_or(0);
        let items: Result<Vec<_>, _> = changes
            .iter()
            .map(|change| change.clone().into_transaction(&self.config.table))
            .collect();
        let items =
            items.map_err(|error| Refused::Finally(StoreError::Invalid(error.to_string())))?;
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
            return Err(match errors::of_reasons(OPERATION, reasons, bytes) {
                Cancelled::Condition(at, reason) => match changes.get(at) {
                    Some(change) => match change.otherwise(reason.item()) {
                        Some(otherwise) => Refused::Otherwise(at, otherwise),
                        None => Refused::Finally(change.refused(reason.item())),
                    },
                    None => Refused::Finally(errors::of_call(OPERATION, &error, bytes).into()),
                },
                Cancelled::Other(error) => Refused::Finally(in_doubt(error, &attempts)),
            });
        }
        let error = errors::of_call(OPERATION, &error, bytes);
        Err(Refused::Finally(in_doubt(error, &attempts)))
    }
}

/// What a failed call of one change comes to. `stored` is there if its condition failed.
fn settle<E: ProvideErrorMetadata>(
    operation: &'static str,
    change: &Change,
    attempts: &AttemptTracker,
    error: &SdkError<E>,
    stored: Option<Option<&Item>>,
) -> Result<(), Refused> {
    let error = match stored {
        // The answer to an earlier attempt was lost, and this one met what that one had done.
        Some(stored) if attempts.doubtful() && change.already_applied(stored) => return Ok(()),
        Some(stored) => match change.otherwise(stored) {
            Some(otherwise) if !attempts.doubtful() => {
                return Err(Refused::Otherwise(0, otherwise));
            }
            _ => change.refused(stored),
        },
        None => errors::of_call(operation, error, change.bytes()).into(),
    };
    Err(Refused::Finally(in_doubt(error, attempts)))
}

/// After an attempt whose answer was lost, only `Unavailable` promises nothing.
fn in_doubt(error: impl Into<StoreError>, attempts: &AttemptTracker) -> StoreError {
    match error.into() {
        error @ StoreError::Unavailable(_) => error,
        error if attempts.doubtful() => StoreError::Unavailable(format!(
            "an earlier attempt got no answer, the last one: {error}"
        )),
        error => error,
    }
}
