//! Sensors that may have fallen silent.

use std::collections::HashMap;

use antumbra_service::paging::{open_cursor, page_limit, seal_cursor};
use antumbra_service::sensors::moment::milliseconds;
use antumbra_service::sensors::state::Connection;
use antumbra_service::sensors::state::attributes::{AWAITED, CHECK_AT, CONNECTION, LOST_AT};
use antumbra_service::sensors::{CheckOutcome, Cursor, Page, Purge, SensorId, StoreError};
use antumbra_shadow::Timestamp;
use aws_sdk_dynamodb::types::AttributeValue;

use super::DynamoDbSensors;
use super::call::{Update, Updated, names};
use super::item::{self, Item, number, text};
use super::keys;
use crate::errors;
use crate::shadows::{PARTITION_KEY, SORT_KEY};
use crate::tables::LIVE;

const DUE: &str = "#liveShard = :shard AND #checkAt <= :now";
const LOSE: &str = "SET #connection = :lost, #lostAt = :now, #contacts = #contacts + :one \
     REMOVE #awaited, #checkAt, #liveShard";
const SILENT: &str = "attribute_exists(#awaited) AND #deadline <= :now";
const REARM: &str = "SET #checkAt = #deadline";
const TALKING: &str = "attribute_exists(#awaited)";
const FORGET: &str = "REMOVE #checkAt, #liveShard";
const NOT_AWAITED: &str = "attribute_exists(#PK) AND attribute_not_exists(#awaited)";
/// Tells these cursors from others.
const KIND: &str = "due";

/// What one call found in a shard.
struct Found {
    items: Vec<Item>,
    last: Option<Item>,
}

impl DynamoDbSensors {
    pub(super) async fn due_sensors(
        &self,
        shard: u32,
        now: Timestamp,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<SensorId>, StoreError> {
        let shard = keys::shard(shard);
        let start = cursor.map(|cursor| self.open_due(cursor, &shard));
        let found = self.due_in(&shard, now, limit, start.transpose()?).await?;
        let sensor = |item: &Item| keys::sensor_of(item::word(item, PARTITION_KEY).ok()?);
        Ok(Page {
            rows: found.items.iter().filter_map(sensor).collect(),
            next: found
                .last
                .as_ref()
                .map(|key| self.seal_due(key, &shard))
                .transpose()?,
        })
    }

    pub(super) async fn purges_due(
        &self,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<Purge>, StoreError> {
        let found = self.due_in(keys::PURGE_SHARD, now, limit, None).await?;
        Ok(found.items.iter().filter_map(keys::purge_of).collect())
    }

    async fn due_in(
        &self,
        shard: &str,
        now: Timestamp,
        limit: usize,
        start: Option<Item>,
    ) -> Result<Found, StoreError> {
        page_limit(limit)?;
        let sent = self
            .client
            .query()
            .table_name(&self.config.table)
            .index_name(LIVE.name)
            .key_condition_expression(DUE)
            .set_expression_attribute_names(Some(names(&[DUE])))
            .expression_attribute_values(":shard", text(shard))
            .expression_attribute_values(":now", number(milliseconds(now)))
            .limit(i32::try_from(limit).unwrap_or(i32::MAX))
            .set_exclusive_start_key(start)
            .send()
            .await;
        let output = sent.map_err(|error| errors::of_call("Query", &error, 0))?;
        Ok(Found {
            items: output.items.unwrap_or_default(),
            last: output.last_evaluated_key,
        })
    }

    pub(super) async fn check_sensor(
        &self,
        id: &SensorId,
        now: Timestamp,
    ) -> Result<CheckOutcome, StoreError> {
        let now = number(milliseconds(now));
        let values = [
            (":lost", text(Connection::Lost.as_str())),
            (":now", now.clone()),
            (":one", number(1)),
        ];
        match self.update(of_state(id, LOSE, SILENT, values)).await? {
            Updated::Done(_) => Ok(CheckOutcome::Lost),
            Updated::Refused { stored: None, .. } => Ok(CheckOutcome::Gone),
            Updated::Refused {
                stored: Some(stored),
                doubtful,
            } => {
                if stored.contains_key(AWAITED) {
                    return self.rearm(id).await;
                }
                if stored.contains_key(CHECK_AT) {
                    self.update(of_state(id, FORGET, NOT_AWAITED, [])).await?;
                }
                // An attempt whose answer was lost may have been the one that did it.
                let lost = item::word(&stored, CONNECTION) == Ok(Connection::Lost.as_str());
                let ours = doubtful && lost && stored.get(LOST_AT) == Some(&now);
                Ok(if ours {
                    CheckOutcome::Lost
                } else {
                    CheckOutcome::Gone
                })
            }
        }
    }

    /// Takes the deadline that is stored now, not the one that was seen: it may have moved.
    async fn rearm(&self, id: &SensorId) -> Result<CheckOutcome, StoreError> {
        match self.update(of_state(id, REARM, TALKING, [])).await? {
            Updated::Done(_) => Ok(CheckOutcome::Rearmed),
            Updated::Refused { .. } => Ok(CheckOutcome::Gone),
        }
    }

    fn seal_due(&self, key: &Item, shard: &str) -> Result<Cursor, StoreError> {
        let word = |name| item::word(key, name);
        let check_at = item::whole(key, LIVE.sort_key.0)?.to_string();
        let (partition, sort) = (word(PARTITION_KEY)?, word(SORT_KEY)?);
        let table = &self.config.table;
        Ok(seal_cursor(&[
            KIND, table, shard, partition, sort, &check_at,
        ]))
    }

    fn open_due(&self, cursor: &Cursor, shard: &str) -> Result<Item, StoreError> {
        let other = || StoreError::Invalid("the cursor belongs to another listing".to_owned());
        let parts = open_cursor(cursor).map_err(|_| other())?;
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        match parts[..] {
            [KIND, table, of, partition, sort, check_at]
                if table == self.config.table && of == shard =>
            {
                Ok(due_key(partition, sort, shard, check_at))
            }
            _ => Err(other()),
        }
    }
}

fn of_state<const N: usize>(
    id: &SensorId,
    update: &str,
    condition: &str,
    values: [(&str, AttributeValue); N],
) -> Update {
    Update {
        key: keys::key(id, keys::STATE),
        update: update.to_owned(),
        condition: condition.to_owned(),
        values: values
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
        other_names: HashMap::new(),
    }
}

/// A key of the index of what is due, as a call's start.
fn due_key(partition: &str, sort: &str, shard: &str, check_at: &str) -> Item {
    Item::from([
        (PARTITION_KEY.to_owned(), text(partition)),
        (SORT_KEY.to_owned(), text(sort)),
        (LIVE.partition_key.to_owned(), text(shard)),
        (
            LIVE.sort_key.0.to_owned(),
            AttributeValue::N(check_at.to_owned()),
        ),
    ])
}
