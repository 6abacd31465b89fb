//! The history of shadows in a table of its own. Keys and encodings are those of `antumbra_wire::history`; all items
//! expire, except the settings and counters of the change feed.

mod changes;
mod documents;
mod feed;
mod item;
mod purge;
mod scan;
mod state;
mod write;

use antumbra_service::history::days;
use antumbra_service::shadows::ShadowId;
use antumbra_service::store::StoreError;
use antumbra_shadow::{Model, Timestamp};
use antumbra_wire::history::{
    Entry, SNAPSHOT_EVERY, document_prefix, history_partition, part_sort, rebuild, time_key,
};
use antumbra_wire::items::ShadowItem;
use aws_sdk_dynamodb::Client;

pub use feed::{Feed, FeedConfig, FeedSettings};
pub use write::WrittenEntries;

use crate::shadows::DynamoDbShadows;
use crate::table::{BatchRead, Key, Query, Table};
use crate::tables::HISTORY;
use crate::value::text;

/// Entries that are read at a time on the way back to one with the documents; together as many as can be needed.
const STEPS: [usize; 3] = [2, 8, SNAPSHOT_EVERY as usize];

/// Configuration of the history table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryConfig {
    /// The table's name or ARN.
    pub table: String,
    /// Days for which entries are kept.
    pub days: u32,
}

/// The history of shadows in a DynamoDB table.
#[derive(Debug, Clone)]
pub struct DynamoDbHistory {
    table: Table,
    days: u32,
}

/// Reads the past of the shadows of a table.
#[derive(Debug, Clone)]
pub struct HistoryReader {
    history: DynamoDbHistory,
    shadows: DynamoDbShadows,
    model: Model,
}

/// Entries of an item to read, by their sort keys after the item's prefix: from one to another, both included.
struct Stretch {
    from: String,
    to: String,
    newest_first: bool,
    limit: usize,
}

impl Stretch {
    fn after(time: u64, limit: usize) -> Stretch {
        Stretch {
            // A colon sorts after all digits: no entry of that time is as late.
            from: format!("{}#:", time_key(time)),
            to: time_key(u64::MAX) + "#:",
            newest_first: false,
            limit,
        }
    }
}

impl DynamoDbHistory {
    /// Uses an existing table.
    pub fn new(client: Client, config: HistoryConfig) -> DynamoDbHistory {
        DynamoDbHistory {
            table: Table::new(client, config.table, HISTORY),
            days: config.days,
        }
    }

    /// Uses an existing table through a client of this configuration.
    pub fn connect(sdk: &aws_types::SdkConfig, config: HistoryConfig) -> DynamoDbHistory {
        DynamoDbHistory::new(crate::tables::client(sdk), config)
    }

    /// Reads the past of the shadows of another table.
    pub fn reader(self, shadows: DynamoDbShadows, model: Model) -> HistoryReader {
        HistoryReader {
            history: self,
            shadows,
            model,
        }
    }

    /// Start of what is kept.
    fn since(&self, now: Timestamp) -> Timestamp {
        let kept = days(self.days).as_nanos() as i128;
        Timestamp::from_nanoseconds(now.nanoseconds() - kept)
    }

    /// Reads entries of one item that have not expired.
    async fn entries(
        &self,
        shadow: &ShadowId,
        item: ShadowItem,
        stretch: Stretch,
        now: Timestamp,
    ) -> Result<Vec<Entry>, StoreError> {
        let prefix = document_prefix(item, shadow.name());
        let mut query = Query::new("#PK = :partition AND #SK BETWEEN :from AND :to")
            .value(":partition", text(history_partition(shadow.id())))
            .value(":from", text(format!("{prefix}{}", stretch.from)))
            .value(":to", text(format!("{prefix}{}", stretch.to)))
            .consistent();
        query.descending = stretch.newest_first;
        let mut entries = Vec::new();
        loop {
            query.limit = Some(stretch.limit - entries.len());
            let found = self.table.query(query.clone()).await?;
            for found in found.items {
                if item::has_expired(&found, now) {
                    continue;
                }
                entries.push(self.decode(found).await?);
            }
            query.start = found.last;
            if query.start.is_none() || entries.len() >= stretch.limit {
                return Ok(entries);
            }
        }
    }

    /// Reads entries of one item backwards from a sort key, newest first, to one that carries the documents. In steps:
    /// small documents are in every entry, and of large ones most entries hold a small diff only.
    async fn back_to_documents(
        &self,
        shadow: &ShadowId,
        item: ShadowItem,
        mut to: String,
        now: Timestamp,
    ) -> Result<Vec<Entry>, StoreError> {
        let mut entries: Vec<Entry> = Vec::new();
        for limit in STEPS {
            let stretch = Stretch {
                from: time_key(0),
                to,
                newest_first: true,
                limit,
            };
            let found = self.entries(shadow, item, stretch, now).await?;
            let is_end = found.len() < limit;
            entries.extend(found);
            let Some(last) = entries.last().map(|last| &last.key) else {
                break;
            };
            if is_end || rebuild::reach(&entries).is_some() {
                break;
            }
            let version = last.version.saturating_sub(1);
            to = format!("{}#{version:019}", time_key(last.time));
        }
        Ok(entries)
    }

    /// Decodes an entry, and reads its further parts.
    async fn decode(&self, found: crate::table::Item) -> Result<Entry, StoreError> {
        let key = self.table.key(&found);
        let Key { partition, sort } = key.ok_or_else(item::malformed)?;
        let keys = (1..=item::more_parts(&found)).map(|number| Key {
            partition: partition.clone(),
            sort: part_sort(&sort, number),
        });
        let keys: Vec<Key> = keys.collect();
        let mut parts = match keys.is_empty() {
            true => Default::default(),
            false => {
                self.table
                    .get_many(keys.clone(), BatchRead::CONSISTENT)
                    .await?
            }
        };
        let parts = keys.iter().map(|key| parts.remove(key));
        let parts: Option<Vec<_>> = parts.collect();
        item::decode(&partition, &sort, found, parts.ok_or_else(item::malformed)?)
    }
}
