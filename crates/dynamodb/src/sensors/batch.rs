//! Writes without conditions, 25 a call.

use std::collections::{HashMap, HashSet};

use antumbra_service::backoff;
use antumbra_service::sensors::{OwnedReading, StoreError};
use aws_sdk_dynamodb::types::{DeleteRequest, PutRequest, WriteRequest};

use super::DynamoDbSensors;
use super::item::{self, Item};
use super::keys;
use crate::errors;
use crate::shadows::{PARTITION_KEY, SORT_KEY};

/// Writes in one call.
const BATCH_WRITES: usize = 25;
/// How often a write is sent that DynamoDB leaves unprocessed.
const TRIES: u32 = 4;
const OPERATION: &str = "BatchWriteItem";

/// A primary key to compare.
type Place = (String, String);

/// One write of a batch.
#[derive(Debug, Clone)]
pub(super) enum Write {
    Put(Item),
    Delete(Item),
}

impl Write {
    fn place(&self) -> Option<Place> {
        let (Write::Put(item) | Write::Delete(item)) = self;
        place(item)
    }

    fn request(&self) -> Option<WriteRequest> {
        let request = WriteRequest::builder();
        Some(match self {
            Write::Put(item) => {
                let put = PutRequest::builder().set_item(Some(item.clone()));
                request.put_request(put.build().ok()?).build()
            }
            Write::Delete(key) => {
                let delete = DeleteRequest::builder().set_key(Some(key.clone()));
                request.delete_request(delete.build().ok()?).build()
            }
        })
    }
}

impl DynamoDbSensors {
    pub(super) async fn put_readings(
        &self,
        readings: &[OwnedReading],
    ) -> Vec<Result<(), StoreError>> {
        let retention = &self.config.retention;
        let writes = readings
            .iter()
            .map(|owned| Write::Put(item::of_reading(&owned.reading, &owned.owner, retention)));
        self.write_all(writes.collect()).await
    }

    /// One result per write, in their order. Of several of one item the last counts, as DynamoDB refuses
    /// a call that names an item twice.
    pub(super) async fn write_all(&self, writes: Vec<Write>) -> Vec<Result<(), StoreError>> {
        let places: Vec<Option<Place>> = writes.iter().map(Write::place).collect();
        let mut last: HashMap<Place, Write> = HashMap::with_capacity(writes.len());
        let mut order = Vec::new();
        for write in writes {
            if let Some(place) = write.place()
                && last.insert(place.clone(), write).is_none()
            {
                order.push(place);
            }
        }
        let mut failed: HashMap<Place, StoreError> = HashMap::new();
        for chunk in order.chunks(BATCH_WRITES) {
            let wanted = chunk
                .iter()
                .filter_map(|place| Some((place.clone(), last.get(place)?.request()?)));
            failed.extend(self.write_batch(wanted.collect()).await);
        }
        places
            .into_iter()
            .map(|place| match place {
                None => Err(StoreError::Invalid("a write without a key".to_owned())),
                Some(place) => failed.get(&place).cloned().map_or(Ok(()), Err),
            })
            .collect()
    }

    /// What of a batch failed.
    async fn write_batch(
        &self,
        mut wanted: HashMap<Place, WriteRequest>,
    ) -> HashMap<Place, StoreError> {
        let all = |wanted: HashMap<Place, WriteRequest>, error: StoreError| {
            wanted
                .into_keys()
                .map(|place| (place, error.clone()))
                .collect()
        };
        for failures in 1..=TRIES {
            let requests = wanted.values().cloned().collect();
            let call = self.client.batch_write_item();
            let sent = call
                .request_items(&self.config.table, requests)
                .send()
                .await;
            let output = match sent {
                Ok(output) => output,
                Err(error) => return all(wanted, errors::of_call(OPERATION, &error, 0)),
            };
            let left: HashSet<Place> = output
                .unprocessed_items
                .iter()
                .flat_map(HashMap::values)
                .flatten()
                .filter_map(place_of)
                .collect();
            wanted.retain(|place, _| left.contains(place));
            if wanted.is_empty() {
                return HashMap::new();
            }
            if failures < TRIES {
                tokio::time::sleep(backoff::delay(failures, fastrand::f64())).await;
            }
        }
        all(wanted, StoreError::Throttled)
    }
}

fn place(item: &Item) -> Option<Place> {
    let text = |name| item.get(name)?.as_s().ok().cloned();
    Some((text(PARTITION_KEY)?, text(SORT_KEY)?))
}

fn place_of(request: &WriteRequest) -> Option<Place> {
    let put = request.put_request().map(|put| put.item());
    put.or_else(|| request.delete_request().map(|delete| delete.key()))
        .and_then(place)
}

impl DynamoDbSensors {
    /// Deletes items by their keys; what of it failed first.
    pub(super) async fn delete_all(&self, found: &[Item]) -> Result<(), StoreError> {
        let deletes = found.iter().filter_map(keys::key_of).map(Write::Delete);
        let results = self.write_all(deletes.collect()).await;
        results.into_iter().collect()
    }
}
