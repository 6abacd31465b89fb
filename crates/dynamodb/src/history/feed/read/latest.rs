//! The newest changes of the feed.

use std::collections::HashSet;

use antumbra_service::history::feed::{FeedChange, FeedError, FeedFilter};
use antumbra_service::paging::page_limit;
use antumbra_service::store::StoreError;
use antumbra_wire::history::{FeedKey, SegmentEntry};
use futures_util::future;
use futures_util::stream::{self, StreamExt as _};

use super::{Feed, LOADED, READS_AT_ONCE, Segment, entry_place};
use crate::history::item;
use crate::table::Query;
use crate::value::{seconds, text};

/// Segments of a partition that are read. One holds the changes of one invocation of the writer.
const SEGMENTS: usize = 50;

impl Feed {
    /// Returns the newest changes, newest first: of the newest segments of each partition. One query per partition,
    /// and one batch for every hundred changes.
    pub async fn latest(&self, limit: usize) -> Result<Vec<FeedChange>, FeedError> {
        page_limit(limit)?;
        let Some(settings) = self.settings().await? else {
            return Ok(Vec::new());
        };
        let now = self.clock.now();
        let partitions = (0..settings.partitions).map(|partition| self.newest_segments(partition));
        let segments = future::try_join_all(partitions).await?;
        let segments = segments.into_iter().flatten();
        let entries = segments
            .filter(|segment| segment.expires > seconds(now))
            .flat_map(|segment| segment.entries);
        let mut entries: Vec<SegmentEntry> = entries.collect();
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.key.time));
        // A change may be recorded twice.
        let mut seen = HashSet::new();
        entries.retain(|entry| seen.insert(entry.change_id.clone()));
        entries.truncate(limit);
        let mut changes = Vec::new();
        for some in entries.chunks(LOADED) {
            let keys = some.iter().map(|entry| entry_place(&entry.key)).collect();
            let mut found = self.load(keys).await?;
            let filter = FeedFilter::default();
            let read = some.iter().filter_map(|entry| {
                let stored = found.remove(&entry_place(&entry.key))?;
                let is_kept = !item::has_expired(&stored, now);
                is_kept.then(|| self.change(entry.clone(), stored, &filter, now))
            });
            let mut read = stream::iter(read.collect::<Vec<_>>()).buffered(READS_AT_ONCE);
            while let Some(change) = read.next().await {
                changes.extend(change?);
            }
        }
        Ok(changes)
    }

    /// The newest segments of a partition, newest first.
    async fn newest_segments(&self, partition: u32) -> Result<Vec<Segment>, StoreError> {
        let sort = |number| text(FeedKey::Segment { partition, number }.sort());
        let query = Query {
            descending: true,
            limit: Some(SEGMENTS),
            ..Query::new("#PK = :partition AND #SK BETWEEN :from AND :to")
        };
        let query = query
            .value(
                ":partition",
                text(FeedKey::Counter { partition }.partition()),
            )
            .value(":from", sort(0))
            .value(":to", sort(u64::MAX));
        let found = self.reader.history.table.query(query).await?;
        found.items.iter().map(Segment::decode).collect()
    }
}
