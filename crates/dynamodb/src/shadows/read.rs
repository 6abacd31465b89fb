//! Reads: keys in batches, those DynamoDB leaves unprocessed asked for again.

use std::collections::{HashMap, HashSet};

use antumbra_service::backoff;
use antumbra_service::shadows::{Layout, Read, ReadConsistency, Snapshot, State, StoreError};
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::batch_get_item::{BatchGetItemError, BatchGetItemOutput};
use aws_sdk_dynamodb::types::KeysAndAttributes;
use futures_util::future;
use futures_util::stream::{self, StreamExt};

use super::DynamoDbShadows;
use super::item::{self, Item};
use super::keys::{Key, Kind};
use crate::errors;

/// Keys in one call.
const BATCH_KEYS: usize = 100;
const OPERATION: &str = "BatchGetItem";

/// What was found at each key that was asked for.
pub(super) type Found = HashMap<Key, Result<Option<Item>, StoreError>>;

impl DynamoDbShadows {
    pub(super) async fn read_one(
        &self,
        read: &Read,
        consistency: ReadConsistency,
    ) -> Result<Snapshot, StoreError> {
        let layout = self.config.layout;
        let keys: Vec<Key> = keys(read, layout).collect();
        let found = if consistency == ReadConsistency::Snapshot && keys.len() > 1 {
            self.get_snapshots(&[&read.shadow]).await
        } else {
            let consistent = consistency != ReadConsistency::Eventual;
            self.get_keys(&keys, consistent).await
        };
        assemble(read, layout, &found)
    }

    pub(super) async fn read_all(
        &self,
        reads: &[Read],
        consistency: ReadConsistency,
    ) -> Vec<Result<Snapshot, StoreError>> {
        let layout = self.config.layout;
        // One item is always as it stood at one instant.
        let at_once = |read: &&Read| {
            consistency == ReadConsistency::Snapshot && Kind::of(layout, read.parts).len() > 1
        };
        let (transacted, batched): (Vec<&Read>, Vec<&Read>) = reads.iter().partition(at_once);
        let mut keys: Vec<Key> = batched.iter().flat_map(|read| keys(read, layout)).collect();
        dedup(&mut keys);
        let mut shadows: Vec<_> = transacted.iter().map(|read| &read.shadow).collect();
        dedup(&mut shadows);

        let consistent = consistency != ReadConsistency::Eventual;
        let (batches, snapshots) = future::join(
            self.get_keys(&keys, consistent),
            self.get_snapshots(&shadows),
        )
        .await;
        reads
            .iter()
            .map(|read| {
                assemble(
                    read,
                    layout,
                    if at_once(&read) { &snapshots } else { &batches },
                )
            })
            .collect()
    }

    async fn get_keys(&self, keys: &[Key], consistent: bool) -> Found {
        let calls: Vec<_> = keys
            .chunks(BATCH_KEYS)
            .map(|chunk| self.get_batch(chunk.to_vec(), consistent))
            .collect();
        let found = stream::iter(calls).buffer_unordered(self.config.fan_out.get());
        found.flat_map(stream::iter).collect().await
    }

    /// One batch, asked for again until nothing of it is left unprocessed, or too many tries in a row
    /// brought nothing.
    async fn get_batch(&self, mut wanted: Vec<Key>, consistent: bool) -> Found {
        let mut found = Found::new();
        let mut fruitless = 0;
        loop {
            let output = match self.call_batch(&wanted, consistent).await {
                Ok(output) => output,
                Err(error) => {
                    let error = StoreError::from(errors::of_call(OPERATION, &error, 0));
                    found.extend(wanted.into_iter().map(|key| (key, Err(error.clone()))));
                    return found;
                }
            };
            let tables = output.responses.unwrap_or_default();
            for item in tables.into_values().flatten() {
                if let Some(key) = Key::of(&item) {
                    found.insert(key, Ok(Some(item)));
                }
            }
            let unprocessed: HashSet<Key> = output
                .unprocessed_keys
                .iter()
                .flat_map(HashMap::values)
                .flat_map(|left| left.keys().iter().filter_map(Key::of))
                .collect();
            let asked = wanted.len();
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
            fruitless = if wanted.len() < asked {
                0
            } else {
                fruitless + 1
            };
            if fruitless >= self.config.read_attempts.max(1) {
                let left = format!("{OPERATION}: left unprocessed {fruitless} times");
                let error = StoreError::Unavailable(left);
                found.extend(wanted.into_iter().map(|key| (key, Err(error.clone()))));
                return found;
            }
            tokio::time::sleep(backoff::delay(fruitless.max(1), fastrand::f64())).await;
        }
    }

    async fn call_batch(
        &self,
        keys: &[Key],
        consistent: bool,
    ) -> Result<BatchGetItemOutput, SdkError<BatchGetItemError>> {
        let keys = KeysAndAttributes::builder()
            .set_keys(Some(keys.iter().map(Key::attributes).collect()))
            .consistent_read(consistent)
            .build()
            .map_err(SdkError::construction_failure)?;
        let call = self.client.batch_get_item();
        call.request_items(&self.config.table, keys).send().await
    }
}

/// Where the documents asked for lie.
pub(super) fn keys(read: &Read, layout: Layout) -> impl Iterator<Item = Key> + '_ {
    let kinds = Kind::of(layout, read.parts).iter();
    kinds.map(|kind| Key::new(&read.shadow, *kind))
}

/// The same key twice in one call is refused by DynamoDB.
fn dedup<T: Clone + Eq + std::hash::Hash>(items: &mut Vec<T>) {
    let mut seen = HashSet::with_capacity(items.len());
    items.retain(|item| seen.insert(item.clone()));
}

fn assemble(read: &Read, layout: Layout, found: &Found) -> Result<Snapshot, StoreError> {
    let mut snapshot = Snapshot::default();
    for kind in Kind::of(layout, read.parts) {
        let item = match found.get(&Key::new(&read.shadow, *kind)) {
            Some(Ok(Some(item))) => item,
            Some(Ok(None)) => continue,
            Some(Err(error)) => return Err(error.clone()),
            None => {
                let lost = "DynamoDB did not speak of a key".to_owned();
                return Err(StoreError::Unavailable(lost));
            }
        };
        let found = item::decode(item, *kind)?;
        if read.parts.has(State::Reported) {
            snapshot.reported = snapshot.reported.or(found.reported);
            snapshot.deleted.reported = snapshot.deleted.reported.max(found.deleted.reported);
        }
        if read.parts.has(State::Desired) {
            snapshot.desired = snapshot.desired.or(found.desired);
            snapshot.deleted.desired = snapshot.deleted.desired.max(found.deleted.desired);
        }
    }
    if snapshot == Snapshot::default() {
        return Err(StoreError::NotFound);
    }
    Ok(snapshot)
}
