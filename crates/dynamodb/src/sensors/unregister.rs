//! Unregisters a sensor: its own items and links at once, its readings by a purge.
//!
//! The transaction that makes a link requires the sensor. Once the sensor is deleted no link can be made, so
//! the links that were not part of its transaction are removed after it, or by the purge if that is
//! interrupted. A failed condition changes nothing.

use antumbra_service::sensors::reading_time::milliseconds;
use antumbra_service::sensors::{RegisteredSensor, SensorId, StoreError};
use antumbra_shadow::Timestamp;
use antumbra_wire::items::{ItemKind, index_keys};

use super::DynamoDbSensors;
use super::keys;
use crate::clients::links::{links, remove_links};
use crate::shadows::purge::PURGE_SHARDS;
use crate::table::{Key, Write};
use crate::tables::LIVE;
use crate::value::{number, text};

/// Time a purge is kept after the sensor is deleted: longer than the timeout of a function that recorded a
/// signal and has yet to store its reading.
const PURGE_KEPT_MILLISECONDS: i64 = 20 * 60 * 1000;
/// Attribute with the time until which a purge is kept.
pub(super) const KEPT_UNTIL: &str = "keptUntil";

impl DynamoDbSensors {
    /// Deletes the links of a sensor that is not registered.
    pub(super) async fn delete_orphaned_links(
        &self,
        id: &SensorId,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let links = self.links(id).await?;
        remove_links(&self.table, &keys::sensor(id), &links, now).await
    }

    pub(super) async fn links(&self, id: &SensorId) -> Result<Vec<Key>, StoreError> {
        let links = links(ItemKind::Link, id.as_str()).projection("#PK, #SK");
        let found = self.table.query_all(links).await?;
        let keys = found.iter().filter_map(|item| self.table.key(item));
        Ok(keys.collect())
    }

    pub(crate) fn put_purge(&self, sensor: &RegisteredSensor, now: Timestamp) -> Write {
        let now = milliseconds(now);
        let id = &sensor.sensor.id;
        let kept_until = now.saturating_add(PURGE_KEPT_MILLISECONDS);
        let mut item = self.table.attributes(&keys::purge(id, &sensor.generation));
        item.insert(KEPT_UNTIL.to_owned(), number(kept_until));
        item.insert(
            LIVE.partition_key.to_owned(),
            text(index_keys::purge_shard(id.shard(PURGE_SHARDS))),
        );
        item.insert(LIVE.sort_key.0.to_owned(), number(now));
        Write::put(item)
    }
}
