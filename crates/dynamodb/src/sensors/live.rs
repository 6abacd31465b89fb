//! Liveness: sensors whose deadline may have passed.

use antumbra_service::paging::page_limit;
use antumbra_service::sensors::reading_time::milliseconds;
use antumbra_service::sensors::state::Connection;
use antumbra_service::sensors::state::attributes::{
    AWAITED, CHECK_AT, CONNECTION, DEADLINE, LOST_AT,
};
use antumbra_service::sensors::{CheckOutcome, Cursor, LivenessIndex, Page, SensorId, StoreError};
use antumbra_shadow::Timestamp;
use antumbra_wire::items::{ItemKind, index_keys};

use super::DynamoDbSensors;
use super::keys;
use crate::table::{BatchRead, Item, Outcome, Query, Write};
use crate::tables::LIVE;
use crate::value::{epoch_milliseconds, number, read_number, read_text, text};

const LOSE: &str = "SET #connection = :lost, #lostAt = :now, #contacts = #contacts + :one \
     REMOVE #awaited, #checkAt, #liveShard";
const SILENT: &str = "attribute_exists(#awaited) AND #deadline <= :now";
/// To the deadline that is stored now: it may have moved since it was read.
const REARM: &str = "SET #checkAt = #deadline";
const AWAITED_STILL: &str = "attribute_exists(#awaited)";
const LEAVE_INDEX: &str = "REMOVE #checkAt, #liveShard";
const NOT_AWAITED: &str = "attribute_exists(#PK) AND attribute_not_exists(#awaited)";

impl LivenessIndex for DynamoDbSensors {
    fn shards(&self) -> u32 {
        self.config.shards
    }

    async fn due(
        &self,
        shard: u32,
        now: Timestamp,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<SensorId>, StoreError> {
        let shard = index_keys::live_shard(shard);
        let found = self.due_items(&shard, now, limit, cursor).await?;
        let sensor = |item: Item| {
            let key = self.table.key(&item)?;
            Some(keys::ids(&key, ItemKind::SensorState)?.0)
        };
        Ok(found.filter_map(sensor))
    }

    async fn are_live(&self, ids: &[SensorId], now: Timestamp) -> Result<Vec<bool>, StoreError> {
        let keys = ids.iter().map(keys::state).collect();
        let found = self.table.get_many(keys, BatchRead::EVENTUAL).await?;
        let now = milliseconds(now);
        let is_live = |item: &Item| {
            let deadline = read_number::<i64>(item, DEADLINE);
            item.contains_key(AWAITED) && deadline.is_ok_and(|deadline| deadline > now)
        };
        let live = ids
            .iter()
            .map(|id| found.get(&keys::state(id)).is_some_and(is_live));
        Ok(live.collect())
    }

    async fn rearm(&self, id: &SensorId) -> Result<CheckOutcome, StoreError> {
        let rearm = Write::update(keys::state(id), REARM).condition(AWAITED_STILL);
        Ok(match self.table.write(rearm).await? {
            Outcome::Applied(_) => CheckOutcome::Rearmed,
            Outcome::Refused(_) => CheckOutcome::Gone,
        })
    }

    async fn check(&self, id: &SensorId, now: Timestamp) -> Result<CheckOutcome, StoreError> {
        let now = epoch_milliseconds(now);
        let lose = Write::update(keys::state(id), LOSE)
            .condition(SILENT)
            .value(":lost", text(Connection::Lost.as_str()))
            .value(":now", now.clone())
            .value(":one", number(1));
        let refusal = match self.table.write(lose).await? {
            Outcome::Applied(_) => return Ok(CheckOutcome::Lost),
            Outcome::Refused(refusal) => refusal,
        };
        let Some(stored) = refusal.stored else {
            return Ok(CheckOutcome::Gone);
        };
        if stored.contains_key(AWAITED) {
            return self.rearm(id).await;
        }
        if stored.contains_key(CHECK_AT) {
            let leave = Write::update(keys::state(id), LEAVE_INDEX).condition(NOT_AWAITED);
            self.table.write(leave).await?;
        }
        // An attempt whose response was lost may have recorded the loss.
        let lost = read_text(&stored, CONNECTION) == Ok(Connection::Lost.as_str());
        let ours = refusal.in_doubt && lost && stored.get(LOST_AT) == Some(&now);
        Ok(match ours {
            true => CheckOutcome::Lost,
            false => CheckOutcome::Gone,
        })
    }
}

impl DynamoDbSensors {
    /// Returns a page of a shard of the index `Live` with the items due by now.
    pub(super) async fn due_items(
        &self,
        shard: &str,
        now: Timestamp,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<Item>, StoreError> {
        page_limit(limit)?;
        let query = Query::new("#liveShard = :shard AND #checkAt <= :now")
            .index(LIVE)
            .value(":shard", text(shard))
            .value(":now", epoch_milliseconds(now));
        self.table.page(&["due", shard], query, limit, cursor).await
    }
}
