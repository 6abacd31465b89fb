//! A sensor goes: itself, its state and its links at once, its readings by a purge.
//!
//! A link needs the sensor, in the transaction that makes it. So once the sensor is gone no link can come,
//! and what came between looking for links and taking the sensor away is taken away right after, or by the
//! purge if that is not reached.

use std::collections::HashMap;

use antumbra_service::sensors::moment::milliseconds;
use antumbra_service::sensors::{RegisteredSensor, SensorError, SensorId, StoreError};
use antumbra_shadow::Timestamp;
use aws_sdk_dynamodb::error::BuildError;
use aws_sdk_dynamodb::types::{
    ConditionCheck, Delete, Put, ReturnValuesOnConditionCheckFailure as OnFailure,
    TransactWriteItem,
};

use super::DynamoDbSensors;
use super::call::names;
use super::item::{Item, number, text};
use super::keys;
use super::registry::{AS_READ, Refused, as_read, built, refused};
use crate::errors;
use crate::shadows::{PARTITION_KEY, SORT_KEY};
use crate::tables::LIVE;

/// Links that go in one transaction: two items each, of 100, with room for the sensor's own three.
const LINKS_AT_ONCE: usize = 48;
/// How long a purge is kept after the sensor is gone: longer than a function may run that recorded a
/// signal and has still to keep its reading.
pub(super) const PURGE_KEPT_MS: i64 = 20 * 60 * 1000;
/// The attribute that says until when a purge is kept.
pub(super) const KEPT_UNTIL: &str = "keptUntil";

impl DynamoDbSensors {
    pub(super) async fn unregister_sensor(
        &self,
        sensor: &RegisteredSensor,
        now: Timestamp,
    ) -> Result<(), SensorError> {
        let id = &sensor.sensor.id;
        let mut links = self.links(id).await?;
        while links.len() > LINKS_AT_ONCE {
            let some = links.split_off(links.len() - LINKS_AT_ONCE);
            self.delete_links(some.iter().flat_map(|link| self.unlink(link)))
                .await?;
        }
        let own = [
            self.take_away(sensor),
            self.delete(keys::key(id, keys::STATE)),
            self.leave_purge(sensor, now),
        ];
        let all = own
            .into_iter()
            .chain(links.iter().flat_map(|link| self.unlink(link)));
        match self.transact(built(all)?).await {
            Ok(()) => {}
            Err(Refused::Condition(_, stored)) => return Err(refused(sensor, stored.as_ref())?),
            Err(Refused::Store(error)) => return Err(error.into()),
        }
        // It is unregistered. What follows is a purge's work, done at once where it can be.
        if let Err(error) = self.delete_orphaned_links(id).await {
            tracing::warn!(%error, sensor = %id, "links are left to the purge");
        }
        Ok(())
    }

    /// Links of a sensor that is not there.
    pub(super) async fn delete_orphaned_links(&self, id: &SensorId) -> Result<(), StoreError> {
        let links = self.links(id).await?;
        for some in links.chunks(LINKS_AT_ONCE) {
            let unlinks = some.iter().flat_map(|link| self.unlink(link));
            let items = std::iter::once(self.is_absent(id)).chain(unlinks);
            match self.transact(built(items)?).await {
                Ok(()) => {}
                // Somebody registered the id again, and links are that sensor's now.
                Err(Refused::Condition(..)) => return Ok(()),
                Err(Refused::Store(error)) => return Err(error),
            }
        }
        Ok(())
    }

    async fn delete_links(
        &self,
        items: impl Iterator<Item = Result<TransactWriteItem, BuildError>>,
    ) -> Result<(), StoreError> {
        match self.transact(built(items)?).await {
            Ok(()) => Ok(()),
            Err(Refused::Store(error)) => Err(error),
            Err(Refused::Condition(..)) => Ok(()),
        }
    }

    /// The keys of all links of a sensor.
    async fn links(&self, id: &SensorId) -> Result<Vec<Item>, StoreError> {
        const CONDITION: &str = "#PK = :partition AND begins_with(#SK, :links)";
        let mut found = Vec::new();
        let mut start = None;
        loop {
            let sent = self
                .client
                .query()
                .table_name(&self.config.table)
                .key_condition_expression(CONDITION)
                .projection_expression("#PK, #SK")
                .set_expression_attribute_names(Some(names(&[CONDITION])))
                .expression_attribute_values(":partition", text(keys::partition(id)))
                .expression_attribute_values(":links", text(keys::LINK))
                .consistent_read(true)
                .set_exclusive_start_key(start)
                .send()
                .await;
            let output = sent.map_err(|error| errors::of_call("Query", &error, 0))?;
            found.extend(output.items.unwrap_or_default());
            start = output.last_evaluated_key;
            if start.is_none() {
                return Ok(found);
            }
        }
    }

    /// A link and its mirror, which has both keys swapped.
    fn unlink(&self, link: &Item) -> [Result<TransactWriteItem, BuildError>; 2] {
        let swapped = |name: &str, from: &str| {
            let value = link.get(from).cloned();
            value.map(|value| (name.to_owned(), value))
        };
        let mirror = [
            swapped(PARTITION_KEY, SORT_KEY),
            swapped(SORT_KEY, PARTITION_KEY),
        ];
        let key = keys::key_of(link).unwrap_or_default();
        [
            self.delete(key),
            self.delete(mirror.into_iter().flatten().collect()),
        ]
    }

    fn delete(&self, key: Item) -> Result<TransactWriteItem, BuildError> {
        let delete = Delete::builder()
            .table_name(&self.config.table)
            .set_key(Some(key));
        Ok(TransactWriteItem::builder().delete(delete.build()?).build())
    }

    fn take_away(&self, sensor: &RegisteredSensor) -> Result<TransactWriteItem, BuildError> {
        let delete = Delete::builder()
            .table_name(&self.config.table)
            .set_key(Some(keys::key(&sensor.sensor.id, keys::INFO)))
            .condition_expression(AS_READ)
            .set_expression_attribute_names(Some(names(&[AS_READ])))
            .set_expression_attribute_values(Some(as_read(sensor)))
            .return_values_on_condition_check_failure(OnFailure::AllOld);
        Ok(TransactWriteItem::builder().delete(delete.build()?).build())
    }

    fn leave_purge(
        &self,
        sensor: &RegisteredSensor,
        now: Timestamp,
    ) -> Result<TransactWriteItem, BuildError> {
        let now = milliseconds(now);
        let mut item = keys::key(&sensor.sensor.id, &keys::purge(&sensor.generation));
        item.extend(HashMap::from([
            (
                KEPT_UNTIL.to_owned(),
                number(now.saturating_add(PURGE_KEPT_MS)),
            ),
            (LIVE.partition_key.to_owned(), text(keys::PURGE_SHARD)),
            (LIVE.sort_key.0.to_owned(), number(now)),
        ]));
        let put = Put::builder()
            .table_name(&self.config.table)
            .set_item(Some(item));
        Ok(TransactWriteItem::builder().put(put.build()?).build())
    }

    fn is_absent(&self, id: &SensorId) -> Result<TransactWriteItem, BuildError> {
        let check = ConditionCheck::builder()
            .table_name(&self.config.table)
            .set_key(Some(keys::key(id, keys::INFO)))
            .condition_expression("attribute_not_exists(#PK)")
            .set_expression_attribute_names(Some(names(&["#PK"])));
        Ok(TransactWriteItem::builder()
            .condition_check(check.build()?)
            .build())
    }
}
