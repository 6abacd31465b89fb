//! Reads by key: one item, many items, and many items as they were at one instant.

use std::collections::{HashMap, HashSet};

use antumbra_service::backoff;
use antumbra_service::store::StoreError;
use aws_sdk_dynamodb::operation::transact_get_items::TransactGetItemsError;
use aws_sdk_dynamodb::types::{Get, KeysAndAttributes, TransactGetItem};
use futures_util::stream::{self, StreamExt};

use super::{Item, Key, Table};
use crate::error::{self, Cancelled, not_built, store_error};

const BATCH_KEYS: usize = 100;
const BATCH_GET: &str = "BatchGetItem";
const TRANSACT_GET: &str = "TransactGetItems";

/// Result for each requested key.
pub(crate) type Found = HashMap<Key, Result<Option<Item>, StoreError>>;

#[derive(Debug, Clone, Copy)]
pub(crate) struct BatchRead {
    pub(crate) consistent: bool,
    /// Consecutive calls without progress after which the remaining keys fail; at least one.
    pub(crate) attempts: u32,
    /// Calls that run at the same time.
    pub(crate) fan_out: usize,
}

impl BatchRead {
    pub(crate) const CONSISTENT: BatchRead = BatchRead {
        consistent: true,
        attempts: 5,
        fan_out: 16,
    };
    pub(crate) const EVENTUAL: BatchRead = BatchRead {
        consistent: false,
        ..BatchRead::CONSISTENT
    };
}

/// A failed read of several items at one instant.
pub(crate) struct SnapshotError {
    pub(crate) error: StoreError,
    /// For each key whether it caused the failure, if DynamoDB reports it.
    pub(crate) at_fault: Option<Vec<bool>>,
}

impl Table {
    /// Reads one item consistently.
    pub(crate) async fn get(&self, key: &Key) -> Result<Option<Item>, StoreError> {
        let call = self.client.get_item().table_name(&self.name);
        let call = call
            .set_key(Some(self.attributes(key)))
            .consistent_read(true);
        let found = call.send().await;
        Ok(found
            .map_err(|error| store_error("GetItem", &error, 0))?
            .item)
    }

    /// Reads items; keys without an item are missing in the result. Fails if any of the calls fails.
    pub(crate) async fn get_many(
        &self,
        keys: Vec<Key>,
        read: BatchRead,
    ) -> Result<HashMap<Key, Item>, StoreError> {
        let found = self.get_each(keys, read).await;
        found
            .into_iter()
            .filter_map(|(key, found)| Some(found.transpose()?.map(|item| (key, item))))
            .collect()
    }

    /// Reads items, with a result for each key.
    pub(crate) async fn get_each(&self, mut keys: Vec<Key>, read: BatchRead) -> Found {
        // DynamoDB rejects a call that names a key twice.
        let mut seen = HashSet::with_capacity(keys.len());
        keys.retain(|key| seen.insert(key.clone()));
        let calls: Vec<_> = keys
            .chunks(BATCH_KEYS)
            .map(|chunk| self.get_batch(chunk.to_vec(), read))
            .collect();
        let found = stream::iter(calls).buffer_unordered(read.fan_out);
        found.flat_map(stream::iter).collect().await
    }

    /// Reads one batch, asking again for keys that DynamoDB leaves unprocessed.
    async fn get_batch(&self, mut wanted: Vec<Key>, read: BatchRead) -> Found {
        let mut found = Found::new();
        let mut fruitless = 0;
        let error = loop {
            let (items, unprocessed) = match self.call_batch(&wanted, read.consistent).await {
                Ok(output) => output,
                Err(error) => break error,
            };
            for item in items {
                if let Some(key) = self.key(&item) {
                    found.insert(key, Ok(Some(item)));
                }
            }
            let requested = wanted.len();
            wanted.retain(|key| {
                let left = unprocessed.contains(key);
                if !left {
                    found.entry(key.clone()).or_insert(Ok(None));
                }
                left
            });
            if wanted.is_empty() {
                return found;
            }
            let progress = wanted.len() < requested;
            fruitless = if progress { 0 } else { fruitless + 1 };
            if fruitless >= read.attempts.max(1) {
                break StoreError::Unavailable(format!(
                    "{BATCH_GET}: left unprocessed {fruitless} times"
                ));
            }
            tokio::time::sleep(backoff::delay(fruitless.max(1), fastrand::f64())).await;
        };
        found.extend(wanted.into_iter().map(|key| (key, Err(error.clone()))));
        found
    }

    async fn call_batch(
        &self,
        keys: &[Key],
        consistent: bool,
    ) -> Result<(Vec<Item>, HashSet<Key>), StoreError> {
        let keys = keys.iter().map(|key| self.attributes(key)).collect();
        let keys = KeysAndAttributes::builder()
            .set_keys(Some(keys))
            .consistent_read(consistent)
            .build()
            .map_err(not_built)?;
        let call = self.client.batch_get_item().request_items(&self.name, keys);
        let sent = call.send().await;
        let output = sent.map_err(|error| store_error(BATCH_GET, &error, 0))?;
        let items = output.responses.into_iter().flatten();
        let left = output.unprocessed_keys.into_iter().flatten();
        Ok((
            items.flat_map(|(_, items)| items).collect(),
            left.flat_map(|(_, left)| left.keys)
                .filter_map(|key| self.key(&key))
                .collect(),
        ))
    }

    /// Reads items as they are at one instant, in the order of the keys; at most 100.
    pub(crate) async fn get_snapshot(
        &self,
        keys: &[Key],
    ) -> Result<Vec<Option<Item>>, SnapshotError> {
        let mut call = self.client.transact_get_items();
        for key in keys {
            let get = Get::builder()
                .table_name(&self.name)
                .set_key(Some(self.attributes(key)))
                .build();
            let get = get.map_err(|error| SnapshotError {
                error: not_built(error),
                at_fault: None,
            })?;
            call = call.transact_items(TransactGetItem::builder().get(get).build());
        }
        let error = match call.send().await {
            Ok(output) => {
                let found = output.responses.unwrap_or_default().into_iter();
                return Ok(found.map(|found| found.item).collect());
            }
            Err(error) => error,
        };
        let Some(TransactGetItemsError::TransactionCanceledException(cancelled)) =
            error.as_service_error()
        else {
            return Err(SnapshotError {
                error: store_error(TRANSACT_GET, &error, 0),
                at_fault: None,
            });
        };
        let reasons = cancelled.cancellation_reasons();
        Err(SnapshotError {
            error: match error::cancellation(TRANSACT_GET, reasons, 0) {
                Cancelled::Other(error) => error,
                Cancelled::Condition(..) => store_error(TRANSACT_GET, &error, 0),
            },
            at_fault: Some(reasons.iter().map(error::is_fault).collect()),
        })
    }
}
