//! Writes: one item, several in a transaction, many in batches.

use std::collections::{HashMap, HashSet};

use antumbra_service::backoff;
use antumbra_service::store::StoreError;
use aws_sdk_dynamodb::error::{BuildError, ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::delete_item::DeleteItemError;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::error::ConditionalCheckFailedException;
use aws_sdk_dynamodb::types::{
    AttributeValue, ConditionCheck, Delete, DeleteRequest, Put, PutRequest, ReturnValue,
    ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update, WriteRequest,
};

use super::{Item, Key, Table, names, non_empty};
use crate::attempts::AttemptTracker;
use crate::error::{self, Cancelled, not_built, store_error};

/// Writes of one `BatchWriteItem` call.
const BATCH_WRITES: usize = 25;
/// Calls for a write that DynamoDB leaves unprocessed.
const BATCH_ATTEMPTS: u32 = 4;
const TRANSACT_WRITE: &str = "TransactWriteItems";
const BATCH_WRITE: &str = "BatchWriteItem";
/// Condition: the item exists.
pub(crate) const EXISTS: &str = "attribute_exists(#PK)";
/// Condition: there is no such item.
pub(crate) const ABSENT: &str = "attribute_not_exists(#PK)";
/// A failed condition comes with the stored item.
const STORED: ReturnValuesOnConditionCheckFailure = ReturnValuesOnConditionCheckFailure::AllOld;

#[derive(Debug, Clone)]
pub(crate) struct Write {
    action: Action,
    condition: Option<String>,
    values: Item,
    names: HashMap<String, String>,
    returns: ReturnValue,
    /// Size of the item, for the error if it is too large.
    bytes: usize,
    /// Another table than the one that writes, with the same keys.
    table: Option<String>,
}

/// Parameters that all write calls share.
struct Parameters {
    table: Option<String>,
    condition: Option<String>,
    names: Option<HashMap<String, String>>,
    values: Option<Item>,
    failure: Option<ReturnValuesOnConditionCheckFailure>,
}

/// Sets the shared parameters of a write on one of the SDK's builders, which have no common trait.
macro_rules! set {
    ($builder:expr, $table:expr, $parameters:expr) => {
        $builder
            .table_name($parameters.table.as_ref().unwrap_or(&$table.name))
            .set_condition_expression($parameters.condition)
            .set_expression_attribute_names($parameters.names)
            .set_expression_attribute_values($parameters.values)
            .set_return_values_on_condition_check_failure($parameters.failure)
    };
}

#[derive(Debug, Clone)]
enum Action {
    Put(Item),
    Update(Key, String),
    Delete(Key),
    Check(Key),
}

impl Write {
    fn new(action: Action) -> Write {
        Write {
            action,
            condition: None,
            values: Item::new(),
            names: HashMap::new(),
            returns: ReturnValue::None,
            bytes: 0,
            table: None,
        }
    }

    pub(crate) fn put(item: Item) -> Write {
        Write::new(Action::Put(item))
    }

    pub(crate) fn update(key: Key, expression: impl Into<String>) -> Write {
        Write::new(Action::Update(key, expression.into()))
    }

    /// Update that sets attributes to values and removes others.
    pub(crate) fn set(key: Key, attributes: Item, remove: &[&str]) -> Write {
        let set = attributes.keys().map(|name| format!("#{name} = :{name}"));
        let mut expression = format!("SET {}", set.collect::<Vec<_>>().join(", "));
        if !remove.is_empty() {
            let remove = remove.iter().map(|name| format!("#{name}"));
            let remove = remove.collect::<Vec<_>>().join(", ");
            expression.push_str(&format!(" REMOVE {remove}"));
        }
        let mut write = Write::update(key, expression);
        let values = attributes.into_iter();
        write.values = values
            .map(|(name, value)| (format!(":{name}"), value))
            .collect();
        write
    }

    pub(crate) fn delete(key: Key) -> Write {
        Write::new(Action::Delete(key))
    }

    /// Checks a condition and changes nothing; only in a transaction.
    pub(crate) fn check(key: Key, condition: impl Into<String>) -> Write {
        Write::new(Action::Check(key)).condition(condition)
    }

    pub(crate) fn condition(mut self, condition: impl Into<String>) -> Write {
        self.condition = Some(condition.into());
        self
    }

    /// Value of the placeholder `:name`.
    pub(crate) fn value(mut self, name: &str, value: AttributeValue) -> Write {
        self.values.insert(name.to_owned(), value);
        self
    }

    /// Attribute of a placeholder that is not named after it.
    pub(crate) fn name(mut self, placeholder: &str, attribute: impl Into<String>) -> Write {
        self.names.insert(placeholder.to_owned(), attribute.into());
        self
    }

    /// The same write in another table, as part of a transaction.
    pub(crate) fn in_table(self, table: &Table) -> Write {
        let table = Some(table.name.clone());
        Write { table, ..self }
    }

    pub(crate) fn bytes(self, bytes: usize) -> Write {
        Write { bytes, ..self }
    }

    /// [`Outcome::Applied`] carries the item before the update.
    pub(crate) fn returning_old(self) -> Write {
        let returns = ReturnValue::AllOld;
        Write { returns, ..self }
    }

    /// [`Outcome::Applied`] carries the item after the update.
    pub(crate) fn returning_new(self) -> Write {
        let returns = ReturnValue::AllNew;
        Write { returns, ..self }
    }

    /// Separates the action from the parameters that all write calls share.
    fn split(self) -> (Action, Parameters) {
        let update = match &self.action {
            Action::Update(_, expression) => Some(expression.as_str()),
            _ => None,
        };
        let mut names = names(update.into_iter().chain(self.condition.as_deref()));
        names.extend(self.names);
        let parameters = Parameters {
            table: self.table,
            names: non_empty(names),
            values: non_empty(self.values),
            failure: self.condition.is_some().then_some(STORED),
            condition: self.condition,
        };
        (self.action, parameters)
    }

    fn into_transaction(self, table: &Table) -> Result<TransactWriteItem, BuildError> {
        let (action, parameters) = self.split();
        let builder = TransactWriteItem::builder();
        Ok(match action {
            Action::Put(item) => {
                let put = Put::builder().set_item(Some(item));
                builder.put(set!(put, table, parameters).build()?)
            }
            Action::Update(key, expression) => {
                let update = Update::builder().set_key(Some(table.attributes(&key)));
                let update = update.update_expression(expression);
                builder.update(set!(update, table, parameters).build()?)
            }
            Action::Delete(key) => {
                let delete = Delete::builder().set_key(Some(table.attributes(&key)));
                builder.delete(set!(delete, table, parameters).build()?)
            }
            Action::Check(key) => {
                let check = ConditionCheck::builder().set_key(Some(table.attributes(&key)));
                builder.condition_check(set!(check, table, parameters).build()?)
            }
        }
        .build())
    }
}

#[derive(Debug)]
pub(crate) enum Outcome {
    /// The write was applied; the item that the write asked for, otherwise empty.
    Applied(Item),
    /// A condition failed and nothing was changed by the last attempt.
    Refused(Refusal),
}

#[derive(Debug)]
pub(crate) struct Refusal {
    /// Position of the write in its transaction.
    pub(crate) at: usize,
    /// The stored item, if there is one.
    pub(crate) stored: Option<Item>,
    /// An earlier attempt of the SDK may have been applied.
    pub(crate) in_doubt: bool,
}

impl Table {
    pub(crate) async fn write(&self, write: Write) -> Result<Outcome, StoreError> {
        if self.is_counted([&write]) {
            return Ok(Outcome::Applied(Item::new()));
        }
        let attempts = AttemptTracker::default();
        let call = Call {
            attempts: &attempts,
            bytes: write.bytes,
        };
        let returns = write.returns.clone();
        let (action, parameters) = write.split();
        match action {
            Action::Put(item) => {
                let put = self.client.put_item().set_item(Some(item));
                let put = set!(put, self, parameters).customize();
                let sent = put.interceptor(attempts.clone()).send().await;
                let sent = sent.map(|output| output.attributes);
                call.outcome("PutItem", sent, |error| match error {
                    PutItemError::ConditionalCheckFailedException(failed) => Some(failed),
                    _ => None,
                })
            }
            Action::Update(key, expression) => {
                let update = self.client.update_item();
                let update = update
                    .set_key(Some(self.attributes(&key)))
                    .update_expression(expression)
                    .return_values(returns);
                let update = set!(update, self, parameters).customize();
                let sent = update.interceptor(attempts.clone()).send().await;
                let sent = sent.map(|output| output.attributes);
                call.outcome("UpdateItem", sent, |error| match error {
                    UpdateItemError::ConditionalCheckFailedException(failed) => Some(failed),
                    _ => None,
                })
            }
            Action::Delete(key) => {
                let delete = self.client.delete_item();
                let delete = delete.set_key(Some(self.attributes(&key)));
                let delete = set!(delete, self, parameters).customize();
                let sent = delete.interceptor(attempts.clone()).send().await;
                let sent = sent.map(|output| output.attributes);
                call.outcome("DeleteItem", sent, |error| match error {
                    DeleteItemError::ConditionalCheckFailedException(failed) => Some(failed),
                    _ => None,
                })
            }
            Action::Check(_) => Err(StoreError::Invalid(
                "a condition check needs a transaction".to_owned(),
            )),
        }
    }

    /// Applies all writes or none. The SDK gives each transaction a token, so that one it repeats is
    /// applied once and a failed condition was not caused by an earlier attempt.
    pub(crate) async fn transact(&self, writes: Vec<Write>) -> Result<Outcome, StoreError> {
        if self.is_counted(&writes) {
            return Ok(Outcome::Applied(Item::new()));
        }
        let attempts = AttemptTracker::default();
        let bytes = writes.iter().map(|write| write.bytes).max().unwrap_or(0);
        let writes: Result<Vec<_>, _> = writes
            .into_iter()
            .map(|write| write.into_transaction(self))
            .collect();
        let sent = self
            .client
            .transact_write_items()
            .set_transact_items(Some(writes.map_err(not_built)?))
            .customize()
            .interceptor(attempts.clone())
            .send()
            .await;
        let Err(error) = sent else {
            return Ok(Outcome::Applied(Item::new()));
        };
        let error = match error.as_service_error() {
            Some(TransactWriteItemsError::TransactionCanceledException(cancelled)) => {
                let reasons = cancelled.cancellation_reasons();
                match error::cancellation(TRANSACT_WRITE, reasons, bytes) {
                    Cancelled::Condition(at, reason) => {
                        return Ok(Outcome::Refused(Refusal {
                            at,
                            stored: reason.item.clone().filter(|item| !item.is_empty()),
                            in_doubt: false,
                        }));
                    }
                    Cancelled::Other(error) => error,
                }
            }
            _ => store_error(TRANSACT_WRITE, &error, bytes),
        };
        Err(attempts.qualify(error))
    }

    /// Applies puts and deletes without conditions, with a result for each. The last of several writes of
    /// one item counts, as DynamoDB rejects a call that names an item twice.
    pub(crate) async fn write_many(&self, writes: Vec<Write>) -> Vec<Result<(), StoreError>> {
        if self.is_counted(&writes) {
            return writes.iter().map(|_| Ok(())).collect();
        }
        let mut requests: HashMap<Key, WriteRequest> = HashMap::with_capacity(writes.len());
        let mut order = Vec::new();
        let mut keys = Vec::with_capacity(writes.len());
        for write in writes {
            let request = self.request(write);
            if let Some((key, request)) = &request
                && requests.insert(key.clone(), request.clone()).is_none()
            {
                order.push(key.clone());
            }
            keys.push(request.map(|(key, _)| key));
        }
        let mut failed: HashMap<Key, StoreError> = HashMap::new();
        for chunk in order.chunks(BATCH_WRITES) {
            let batch = chunk.iter().filter_map(|key| requests.remove_entry(key));
            failed.extend(self.write_batch(batch.collect()).await);
        }
        keys.into_iter()
            .map(|key| match key {
                None => Err(StoreError::Invalid("a write without a key".to_owned())),
                Some(key) => failed.get(&key).cloned().map_or(Ok(()), Err),
            })
            .collect()
    }

    fn request(&self, write: Write) -> Option<(Key, WriteRequest)> {
        let request = WriteRequest::builder();
        Some(match write.action {
            Action::Put(item) => {
                let key = self.key(&item)?;
                let put = PutRequest::builder().set_item(Some(item)).build().ok()?;
                (key, request.put_request(put).build())
            }
            Action::Delete(key) => {
                let delete = DeleteRequest::builder().set_key(Some(self.attributes(&key)));
                (key, request.delete_request(delete.build().ok()?).build())
            }
            Action::Update(..) | Action::Check(_) => return None,
        })
    }

    /// Returns the writes of one batch that failed.
    async fn write_batch(
        &self,
        mut wanted: HashMap<Key, WriteRequest>,
    ) -> HashMap<Key, StoreError> {
        let mut error = StoreError::Throttled;
        for attempt in 1..=BATCH_ATTEMPTS {
            let requests = wanted.values().cloned().collect();
            let call = self.client.batch_write_item();
            let sent = call.request_items(&self.name, requests).send().await;
            let output = match sent {
                Ok(output) => output,
                Err(failed) => {
                    error = store_error(BATCH_WRITE, &failed, 0);
                    break;
                }
            };
            let left = output.unprocessed_items.iter().flat_map(HashMap::values);
            let left: HashSet<Key> = left
                .flatten()
                .filter_map(|left| self.key_of(left))
                .collect();
            wanted.retain(|key, _| left.contains(key));
            if wanted.is_empty() {
                return HashMap::new();
            }
            if attempt < BATCH_ATTEMPTS {
                tokio::time::sleep(backoff::delay(attempt, fastrand::f64())).await;
            }
        }
        wanted.into_keys().map(|key| (key, error.clone())).collect()
    }

    fn key_of(&self, request: &WriteRequest) -> Option<Key> {
        let put = request.put_request().map(|put| put.item());
        put.or_else(|| request.delete_request().map(|delete| delete.key()))
            .and_then(|item| self.key(item))
    }
}

struct Call<'a> {
    attempts: &'a AttemptTracker,
    bytes: usize,
}

impl Call<'_> {
    fn outcome<E: ProvideErrorMetadata>(
        &self,
        operation: &'static str,
        sent: Result<Option<Item>, SdkError<E>>,
        failed_condition: impl Fn(&E) -> Option<&ConditionalCheckFailedException>,
    ) -> Result<Outcome, StoreError> {
        let error = match sent {
            Ok(returned) => return Ok(Outcome::Applied(returned.unwrap_or_default())),
            Err(error) => error,
        };
        if let Some(failed) = error.as_service_error().and_then(failed_condition) {
            return Ok(Outcome::Refused(Refusal {
                at: 0,
                stored: failed.item.clone().filter(|item| !item.is_empty()),
                in_doubt: self.attempts.in_doubt(),
            }));
        }
        let error = store_error(operation, &error, self.bytes);
        Err(self.attempts.qualify(error))
    }
}

#[cfg(not(test))]
impl Table {
    /// Only a test counts writes instead of making them.
    fn is_counted<'a>(&self, _: impl IntoIterator<Item = &'a Write>) -> bool {
        false
    }
}

#[cfg(test)]
impl Table {
    /// Counts writes by their keys instead of making them, in a test of hot keys.
    fn is_counted<'a>(&self, writes: impl IntoIterator<Item = &'a Write>) -> bool {
        let writes = writes.into_iter().filter_map(|write| self.counted(write));
        crate::hot_keys::count(writes.collect())
    }

    /// The key of a write, and the indexes whose entries it may change, with their keys if it has them.
    fn counted(&self, write: &Write) -> Option<crate::hot_keys::CountedWrite> {
        let (key, expression) = match &write.action {
            Action::Put(item) => (self.key(item)?, ""),
            Action::Update(key, expression) => (key.clone(), &expression[..]),
            Action::Delete(key) | Action::Check(key) => (key.clone(), ""),
        };
        let indexes = self.schema.indexes.iter().filter_map(|index| {
            let (partition, sort) = (index.partition_key, index.sort_key.0);
            let (partition, sort) = match &write.action {
                Action::Put(item) => (Some(item.get(partition)?), Some(item.get(sort)?)),
                _ => {
                    let names = [partition, sort].map(|name| format!("#{name}"));
                    names.iter().find(|name| expression.contains(*name))?;
                    let set = expression.split_once(&format!("#{partition} = "));
                    let end = |c: char| !c.is_ascii_alphanumeric() && c != ':';
                    let placeholder = set.and_then(|(_, after)| after.split(end).next());
                    (placeholder.and_then(|name| write.values.get(name)), None)
                }
            };
            Some(crate::hot_keys::IndexEntry {
                index: *index,
                partition: partition.and_then(|value| value.as_s().ok().cloned()),
                sort: sort.cloned(),
            })
        });
        Some(crate::hot_keys::CountedWrite {
            indexes: indexes.collect(),
            key,
        })
    }
}
