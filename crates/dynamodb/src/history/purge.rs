//! Purge of a shadow's past, one page at a time.
//!
//! A marker tells the writer which changes are not recorded any more, however late they come. Beside the markers the table
//! has the latest time of all of them: the writer reads it once for a batch, and reads markers only for changes up to then.

use std::time::Duration;

use antumbra_service::history::days;
use antumbra_service::shadows::ShadowId;
use antumbra_service::store::StoreError;
use antumbra_shadow::Timestamp;
use antumbra_wire::history::{
    Entry, LATEST_PURGE, history_partition, past_ranges, purge_marker_sort,
};

use super::DynamoDbHistory;
use crate::table::{BatchRead, Key, Query, Write};
use crate::value::{epoch_seconds, number, read_number};

/// Time up to which changes are purged, in nanoseconds since 1970.
const UNTIL: &str = "until";
/// Items examined by one call.
const ITEMS_AT_ONCE: usize = 1000;
/// Days for which a marker is kept at least: longer than a batch that failed can be recorded again.
const MARKER_DAYS: u32 = 35;
/// The marker is kept as long as an entry of the last moment before it, and a day more.
const MARKER_RESERVE: Duration = Duration::from_secs(24 * 60 * 60);

/// Result of deleting a part of a shadow's past.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeletedPart {
    pub(crate) deleted: usize,
    /// The sort key to continue after; `None` at the end.
    pub(crate) next: Option<String>,
}

impl DynamoDbHistory {
    /// Leaves the marker of a purge, unless there is a later one.
    pub(crate) async fn mark_purged(
        &self,
        shadow: &ShadowId,
        until: u64,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let expires = now.after(days(self.days.max(MARKER_DAYS)) + MARKER_RESERVE);
        let later = "attribute_not_exists(#until) OR #until < :until";
        let marker = Write::update(marker_key(shadow), "SET #until = :until, #ttl = :ttl")
            .value(":ttl", epoch_seconds(expires));
        let latest = Write::update(latest_key(), "SET #until = :until");
        for write in [marker, latest] {
            let write = write.value(":until", number(until)).condition(later);
            // A refusal means that it reaches as far already.
            self.table.write(write).await?;
        }
        Ok(())
    }

    /// Deletes some entries of a shadow up to a time, after a position. Entries before their parts, so that a reader finds
    /// all parts of an entry that it finds.
    pub(crate) async fn delete_past(
        &self,
        shadow: &ShadowId,
        until: u64,
        position: Option<&str>,
    ) -> Result<DeletedPart, StoreError> {
        let partition = history_partition(shadow.id());
        let key = |sort: &str| Key {
            partition: partition.clone(),
            sort: sort.to_owned(),
        };
        let mut deleted = 0;
        let ranges = past_ranges(shadow.name(), until).into_iter();
        for [first, last] in ranges.filter(|[_, last]| position.is_none_or(|at| at < &**last)) {
            let start = position.filter(|at| **at >= *first);
            let query = Query {
                start: start.map(|at| self.table.attributes(&key(at))),
                ..Query::between(&partition, first, &last)
                    .projection("#PK, #SK")
                    .limit(ITEMS_AT_ONCE - deleted)
            };
            let found = self.table.query(query).await?;
            let keys = found.items.iter().filter_map(|item| self.table.key(item));
            let deletes: Vec<Write> = keys.map(Write::delete).collect();
            deleted += deletes.len();
            let results = self.table.write_many(deletes).await;
            results.into_iter().collect::<Result<(), _>>()?;
            let stopped = found.last.and_then(|last| self.table.key(&last));
            let stopped = stopped.map(|key| key.sort);
            if stopped.is_some() || deleted >= ITEMS_AT_ONCE {
                // The end of the range, if it was examined to its end.
                let next = Some(stopped.unwrap_or(last));
                return Ok(DeletedPart { deleted, next });
            }
        }
        Ok(DeletedPart {
            deleted,
            next: None,
        })
    }

    /// Returns for each entry whether it was purged, and so must not be written. A purge of this moment may not be seen:
    /// it examines the past once more when no writer that missed it can be running.
    pub async fn purged(&self, entries: &[Entry]) -> Result<Vec<bool>, StoreError> {
        let read = |keys| self.table.get_many(keys, BatchRead::EVENTUAL);
        let latest = read(vec![latest_key()]).await?;
        let latest: u64 = match latest.get(&latest_key()) {
            Some(latest) => read_number(latest, UNTIL)?,
            None => return Ok(vec![false; entries.len()]),
        };
        let marker = |entry: &Entry| Key {
            partition: entry.key.partition(),
            sort: purge_marker_sort(&entry.key.name),
        };
        let old = entries.iter().filter(|entry| entry.key.time <= latest);
        let markers: Vec<Key> = old.map(marker).collect();
        if markers.is_empty() {
            return Ok(vec![false; entries.len()]);
        }
        let markers = read(markers).await?;
        let purged = entries
            .iter()
            .map(|entry| match markers.get(&marker(entry)) {
                Some(marker) => Ok(entry.key.time <= read_number(marker, UNTIL)?),
                None => Ok(false),
            });
        purged.collect()
    }
}

fn marker_key(shadow: &ShadowId) -> Key {
    Key {
        partition: history_partition(shadow.id()),
        sort: purge_marker_sort(shadow.name()),
    }
}

fn latest_key() -> Key {
    let [partition, sort] = LATEST_PURGE.map(str::to_owned);
    Key { partition, sort }
}
