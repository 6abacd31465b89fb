//! The due index: deliveries to queue again at a time, and clients whose held deliveries are to be released.

use std::collections::HashMap;

use antumbra_service::clients::{ClientId, Mode};
use antumbra_service::deliveries::{
    DUE_SHARDS, DeliveryId, DeliveryRecord, DueEntry, DueIndex, DueTask, Waiting,
};
use antumbra_service::sensors::reading_time::milliseconds;
use antumbra_service::store::StoreError;
use antumbra_shadow::Timestamp;
use antumbra_wire::items::ItemKind;

use super::DynamoDbDeliveries;
use super::item::{RELEASE, decode, key};
use crate::clients::item::{client_key, decode_client};
use crate::table::{BatchRead, Item, Key, Query, Write};

const KIND: ItemKind = ItemKind::DueDelivery;

struct Entry {
    key: String,
    at: i64,
    client: ClientId,
    /// `None` for a task that releases held deliveries.
    delivery: Option<DeliveryId>,
}

impl DueIndex for DynamoDbDeliveries {
    fn shards(&self) -> u32 {
        DUE_SHARDS
    }

    async fn due(
        &self,
        shard: u32,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<DueEntry>, StoreError> {
        // A key continues after its time, so those of this millisecond are due in the next one.
        let until = format!("{:013}", milliseconds(now));
        let partition = KIND.partition(&shard.to_string());
        let query = Query::between(partition, KIND.sort_prefix(), KIND.sort(&until)).consistent();
        let items = self.table.query(query.limit(limit)).await?.items;
        let sorts = items.iter().filter_map(|item| self.table.key(item));
        let entries: Vec<Entry> = sorts.filter_map(|key| Entry::parse(&key.sort)).collect();
        let deliveries = entries.iter().filter_map(|entry| entry.delivery.as_ref());
        let clients = entries.iter().map(|entry| client_key(&entry.client));
        let mut keys: Vec<Key> = deliveries.map(key).chain(clients).collect();
        keys.sort();
        keys.dedup();
        let found = self.table.get_many(keys, BatchRead::CONSISTENT).await?;
        let due = entries.into_iter().map(|entry| {
            Ok(DueEntry {
                shard,
                task: entry.task(&found)?,
                key: entry.key,
            })
        });
        due.collect()
    }

    async fn remove_due(&self, entry: &DueEntry) -> Result<(), StoreError> {
        let key = Key::new(KIND, &entry.shard.to_string(), &entry.key);
        self.table.write(Write::delete(key)).await.map(drop)
    }
}

impl Entry {
    /// Parses a sort key; `None` if other programs wrote it.
    fn parse(sort: &str) -> Option<Entry> {
        let key = sort.strip_prefix(KIND.sort_prefix())?;
        let mut parts = key.splitn(3, '#');
        let (at, client, order) = (parts.next()?, parts.next()?, parts.next()?);
        let client = ClientId::new(client).ok()?;
        let delivery = match order {
            RELEASE => None,
            order => Some(DeliveryId::from_order(&client, order).ok()?),
        };
        Some(Entry {
            key: key.to_owned(),
            at: at.parse().ok()?,
            client,
            delivery,
        })
    }

    fn task(&self, found: &HashMap<Key, Item>) -> Result<DueTask, StoreError> {
        let Some(id) = &self.delivery else {
            return Ok(DueTask::Release(self.client.clone()));
        };
        let record = found.get(&key(id)).cloned().map(decode).transpose()?;
        let is_due = |record: &DeliveryRecord| {
            let progress = &record.progress;
            progress.waiting == Some(Waiting::Due)
                && progress.not_before.map(milliseconds) == Some(self.at)
        };
        let Some(record) = record.filter(is_due) else {
            return Ok(DueTask::Nothing);
        };
        let client = found.get(&client_key(&self.client)).cloned();
        let client = client.map(decode_client).transpose()?;
        let mode = client.map_or(Mode::Latest, |client| client.mode);
        Ok(DueTask::Queue(Box::new(record), mode))
    }
}
