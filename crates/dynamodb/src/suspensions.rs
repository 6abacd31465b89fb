//! Records of failing targets, and marks of keys with messages in the spill queue.

use std::time::Duration;

use antumbra_service::notifications::suspension::{
    FAILURE_WINDOW, SpilledKey, Suspension, SuspensionState, Suspensions,
};
use antumbra_service::shard;
use antumbra_service::store::{StoreError, Version};
use antumbra_shadow::Timestamp;
use antumbra_wire::items::ItemKind;
use async_trait::async_trait;
use aws_sdk_dynamodb::Client;
use serde::{Deserialize, Serialize};

use crate::table::{ABSENT, BatchRead, EXISTS, Item, Key, Outcome, Query, Table, Write};
use crate::tables::MAIN;
use crate::value::{
    EpochMilliseconds, epoch_seconds, from_item, number, read_number, seconds, text,
};

/// Shards of the marks of a registration.
const MARK_SHARDS: u32 = 16;
/// Time for which a count of failures is kept after it is no longer used.
const SPARE: Duration = Duration::from_secs(3600);

/// Records of failing targets in a DynamoDB table.
#[derive(Debug, Clone)]
pub struct DynamoDbSuspensions {
    table: Table,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    registration: String,
    state: SuspensionState,
    failures: u32,
    failed_at: EpochMilliseconds,
    version: i64,
    ttl: Option<i64>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Mark {
    /// Id of the last message of the key.
    last: String,
    ttl: i64,
}

impl DynamoDbSuspensions {
    /// Uses an existing table.
    pub fn new(client: Client, table: impl Into<String>) -> DynamoDbSuspensions {
        DynamoDbSuspensions {
            table: Table::new(client, table, MAIN),
        }
    }

    async fn apply(&self, write: Write) -> Result<bool, StoreError> {
        match self.table.write(write).await? {
            Outcome::Applied(_) => Ok(true),
            Outcome::Refused(_) => Ok(false),
        }
    }
}

fn record_key(registration: &str) -> Key {
    Key::new(ItemKind::Suspension, "", registration)
}

/// Partition of marks. Many keys are marked in a second if the target of a registration for all devices fails.
fn mark_owner(registration: &str, shard: u32) -> String {
    format!("{registration}~{shard}")
}

fn mark_key(key: &SpilledKey) -> Key {
    let owner = mark_owner(&key.registration, shard(&key.key, MARK_SHARDS));
    Key::new(ItemKind::SpilledKey, &owner, &key.key)
}

fn conditional(write: Write, version: Version) -> Write {
    match version {
        // A record that expired may still be stored for days; it is read like any other.
        Version::NONE => write.condition(ABSENT),
        version => write
            .condition("#version = :read")
            .value(":read", number(version.0)),
    }
}

fn suspension(item: Item) -> Result<Suspension, StoreError> {
    let record: Record = from_item("record of a failing target", item)?;
    Ok(Suspension {
        registration: record.registration,
        state: record.state,
        failures: record.failures,
        failed_at: record.failed_at.0,
        version: Version(record.version),
    })
}

#[async_trait]
impl Suspensions for DynamoDbSuspensions {
    async fn all(&self) -> Result<Vec<Suspension>, StoreError> {
        let query = Query::new("#PK = :partition")
            .consistent()
            .value(":partition", text(ItemKind::Suspension.partition("")));
        let items = self.table.query_all(query).await?.into_iter();
        items.map(suspension).collect()
    }

    async fn save(&self, record: &Suspension) -> Result<bool, StoreError> {
        let expires = record.failed_at.after(FAILURE_WINDOW + SPARE);
        let failing = record.state == SuspensionState::Failing;
        let item = Record {
            registration: record.registration.clone(),
            state: record.state,
            failures: record.failures,
            failed_at: EpochMilliseconds(record.failed_at),
            version: record.version.next().0,
            ttl: failing.then(|| seconds(expires)),
        };
        let put = Write::put(self.table.item(&record_key(&record.registration), &item)?);
        self.apply(conditional(put, record.version)).await
    }

    async fn remove(&self, record: &Suspension) -> Result<bool, StoreError> {
        let delete = Write::delete(record_key(&record.registration));
        self.apply(conditional(delete, record.version)).await
    }

    async fn touch(&self, registration: &str) -> Result<bool, StoreError> {
        let update = Write::update(record_key(registration), "SET #version = #version + :one")
            .condition(EXISTS)
            .value(":one", number(1));
        self.apply(update).await
    }

    async fn mark(
        &self,
        keys: &[(SpilledKey, String)],
        until: Timestamp,
    ) -> Result<(), StoreError> {
        let ttl = seconds(until);
        let put = |(key, last): &(SpilledKey, String)| {
            let last = last.clone();
            let item = self.table.item(&mark_key(key), &Mark { last, ttl })?;
            Ok(Write::put(item))
        };
        let puts = keys.iter().map(put).collect::<Result<_, StoreError>>()?;
        self.table.write_many(puts).await.into_iter().collect()
    }

    async fn marked(&self, keys: &[SpilledKey], now: Timestamp) -> Result<Vec<bool>, StoreError> {
        let wanted = keys.iter().map(mark_key).collect();
        let found = self.table.get_many(wanted, BatchRead::CONSISTENT).await?;
        // An expired item may still be stored for days.
        let now = seconds(now);
        let is_valid = |item: &Item| read_number::<i64>(item, "ttl").is_ok_and(|ttl| ttl > now);
        let marked = |key| found.get(&mark_key(key)).is_some_and(is_valid);
        Ok(keys.iter().map(marked).collect())
    }

    async fn clear(&self, key: &SpilledKey, id: &str) -> Result<(), StoreError> {
        let delete = Write::delete(mark_key(key))
            .condition("#last = :id")
            .value(":id", text(id));
        self.apply(delete).await.map(drop)
    }

    async fn is_drained(&self, registration: &str, now: Timestamp) -> Result<bool, StoreError> {
        for shard in 0..MARK_SHARDS {
            if !self.is_shard_drained(registration, shard, now).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl DynamoDbSuspensions {
    async fn is_shard_drained(
        &self,
        registration: &str,
        shard: u32,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let owner = mark_owner(registration, shard);
        let partition = ItemKind::SpilledKey.partition(&owner);
        let mut query = Query::new("#PK = :partition")
            .consistent()
            .filter("#ttl > :now")
            .value(":partition", text(partition))
            .value(":now", epoch_seconds(now));
        loop {
            let found = self.table.query(query.clone()).await?;
            query.start = found.last;
            if !found.items.is_empty() || query.start.is_none() {
                return Ok(found.items.is_empty());
            }
        }
    }
}
