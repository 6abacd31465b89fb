//! Purge of an unregistered sensor's readings, one page at a time.
//!
//! The purge stores its position, so that it examines each reading once however often it stops. At the end
//! it waits until no more readings can arrive, and examines the partition once more, from its start.

use antumbra_service::purges::{Purge, PurgeQueue};
use antumbra_service::sensors::{Generation, SensorId, StoreError};
use antumbra_shadow::Timestamp;
use antumbra_wire::items::{ItemKind, index_keys};
use futures_util::future::try_join_all;

use super::DynamoDbSensors;
use super::unregister::KEPT_UNTIL;
use super::{item, keys};
use crate::history::DynamoDbHistory;
use crate::shadows::purge::{
    POSITION, PURGE_SHARDS, PurgeState, continue_at, pass_started_at, purged_shadow, start_again,
    step,
};
use crate::table::{EXISTS, Key, Query, Write};
use crate::value::{read_number, text};

/// Readings examined by one call.
const READINGS_AT_ONCE: usize = 1000;

impl PurgeQueue for DynamoDbSensors {
    async fn due_purges(&self, now: Timestamp, limit: usize) -> Result<Vec<Purge>, StoreError> {
        let shards = (0..PURGE_SHARDS).map(index_keys::purge_shard);
        let shards = shards.map(|shard| async move {
            let found = self.due_items(&shard, now, limit, None).await;
            found.map(|found| found.rows)
        });
        let found = try_join_all(shards).await?;
        let keys = found.iter().flatten();
        let keys = keys.filter_map(|item| self.table.key(item));
        let purge = |key: Key| {
            if let Some(shadow) = purged_shadow(&key) {
                return self.history.is_some().then_some(Purge::Past(shadow));
            }
            let (sensor, generation) = keys::ids(&key, ItemKind::Purge)?;
            let generation = Generation::new(generation).ok()?;
            Some(Purge::Readings { sensor, generation })
        };
        Ok(keys.filter_map(purge).take(limit).collect())
    }

    async fn purge(&self, purge: &Purge, now: Timestamp) -> Result<bool, StoreError> {
        match (purge, &self.history) {
            (Purge::Readings { sensor, generation }, _) => {
                self.purge_readings(sensor, generation, now).await
            }
            (Purge::Past(shadow), Some(history)) => {
                let step = step(&self.table, history, shadow, now).await?;
                Ok(step.state == PurgeState::Done)
            }
            (Purge::Past(_), None) => Ok(false),
        }
    }
}

impl DynamoDbSensors {
    /// Purges the past of shadows in this table too.
    #[must_use]
    pub fn with_history(self, history: Option<DynamoDbHistory>) -> DynamoDbSensors {
        DynamoDbSensors { history, ..self }
    }

    async fn purge_readings(
        &self,
        sensor: &SensorId,
        generation: &Generation,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let key = keys::purge(sensor, generation);
        let Some(stored) = self.table.get(&key).await? else {
            return Ok(true);
        };
        self.delete_orphaned_links(sensor, now).await?;
        let position = stored.get(POSITION).and_then(|at| at.as_s().ok());
        let (readings, next) = self
            .remaining_readings(sensor, generation, position)
            .await?;
        let deletes = readings.into_iter().map(Write::delete).collect();
        let deleted = self.table.write_many(deletes).await;
        deleted.into_iter().collect::<Result<(), _>>()?;
        let started_at = pass_started_at(&stored, now)?;
        let update = match next {
            Some(position) => continue_at(key, &position, started_at, now),
            None if started_at < read_number(&stored, KEPT_UNTIL)? => start_again(key),
            None => {
                self.table.write(Write::delete(key)).await?;
                return Ok(true);
            }
        };
        // Another sweep may have finished the purge.
        let update = update.condition(EXISTS);
        self.table.write(update).await?;
        Ok(false)
    }

    /// The next readings of the purge's generation, and the position to continue at.
    async fn remaining_readings(
        &self,
        sensor: &SensorId,
        generation: &Generation,
        position: Option<&String>,
    ) -> Result<(Vec<Key>, Option<String>), StoreError> {
        let partition = ItemKind::Reading.partition(sensor.as_str());
        let start = position.map(|sort| {
            let (partition, sort) = (partition.clone(), sort.clone());
            self.table.attributes(&Key { partition, sort })
        });
        let first = ItemKind::Reading.sort_prefix();
        let query = Query {
            start,
            ..item::range(sensor, first, keys::AFTER_READINGS)
                .limit(READINGS_AT_ONCE)
                .projection("#PK, #SK")
                .filter("#generation = :generation")
                .value(":generation", text(generation.as_str()))
        };
        let found = self.table.query(query).await?;
        let keys = found.items.iter().filter_map(|item| self.table.key(item));
        let next = found.last.and_then(|last| self.table.key(&last));
        Ok((keys.collect(), next.map(|key| key.sort)))
    }
}
