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
use antumbra_shadow::{Model, Patch, Timestamp};
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

/// Entries that are read at a time on the way back to one with the documents; together as many as can be needed.
const STEPS: [usize; 3] = [2, 8, SNAPSHOT_EVERY as usize];

/// Entries that are read at a time on the way past expired ones.
const EXPIRED_AT_ONCE: usize = 50;

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
    /// Bytes of decoded entries after which no more are read.
    bytes: usize,
}

/// Entries of a stretch.
struct Entries {
    entries: Vec<Entry>,
    /// The stretch has no more.
    is_end: bool,
}

impl Stretch {
    fn after(time: u64, limit: usize) -> Stretch {
        Stretch {
            // A colon sorts after all digits: no entry of that time is as late.
            from: format!("{}#:", time_key(time)),
            to: time_key(u64::MAX) + "#:",
            newest_first: false,
            limit,
            bytes: usize::MAX,
        }
    }

    fn query(&self, shadow: &ShadowId, item: ShadowItem) -> Query {
        let prefix = document_prefix(item, shadow.name());
        let [from, to] = [&self.from, &self.to].map(|time| format!("{prefix}{time}"));
        Query::between(history_partition(shadow.id()), from, to).descending(self.newest_first)
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

    /// Reads entries of one item that have not expired. The expired ones are the oldest, unless entries were kept for other
    /// numbers of days before: newest first, nothing behind the first of them is read.
    async fn entries(
        &self,
        shadow: &ShadowId,
        item: ShadowItem,
        mut stretch: Stretch,
        now: Timestamp,
    ) -> Result<Entries, StoreError> {
        if !stretch.newest_first {
            let since = u64::try_from(self.since(now).nanoseconds()).unwrap_or_default();
            stretch.from = stretch.from.max(time_key(since));
        }
        let mut query = stretch.query(shadow, item).consistent();
        let mut entries = Vec::new();
        let (mut bytes, mut passes_expired) = (0, false);
        loop {
            query.limit = Some(match passes_expired {
                true => EXPIRED_AT_ONCE,
                false => stretch.limit - entries.len(),
            });
            let found = self.table.query(query.clone()).await?;
            for found in found.items {
                if item::has_expired(&found, now) {
                    if stretch.newest_first {
                        let is_end = true;
                        return Ok(Entries { entries, is_end });
                    }
                    passes_expired = true;
                    continue;
                }
                let entry = self.decode(found).await?;
                bytes += decoded_bytes(&entry);
                entries.push(entry);
                if entries.len() >= stretch.limit || bytes > stretch.bytes {
                    let is_end = false;
                    return Ok(Entries { entries, is_end });
                }
            }
            query.start = found.last;
            if query.start.is_none() {
                let is_end = true;
                return Ok(Entries { entries, is_end });
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
                bytes: usize::MAX,
            };
            let found = self.entries(shadow, item, stretch, now).await?;
            entries.extend(found.entries);
            let Some(last) = entries.last().map(|last| &last.key) else {
                break;
            };
            if found.is_end || rebuild::reach(&entries).is_some() {
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

fn decoded_bytes(entry: &Entry) -> usize {
    let value = |value: Option<&str>| value.map_or(0, str::len);
    let parts = [&entry.reported, &entry.desired].into_iter().flatten();
    let bytes = parts.map(|part| {
        let replaced = part.diff.iter().flat_map(Patch::replaced);
        let diff = replaced.map(|(pointer, old, new)| pointer.len() + value(old) + value(new));
        let document = part.document.as_ref();
        document.map_or(0, |document| document.as_str().len()) + diff.sum::<usize>()
    });
    bytes.sum()
}
