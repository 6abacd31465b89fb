//! Listings by id, from the index `Fleet`.
//!
//! A document has the key of its shadow, so both documents are next to each other in one shard. Two shadows have the
//! same key only if they were named for it; a cursor names the last shadow and not only its key, so that they are all
//! listed.

use antumbra_service::access::{IdRange, IdRanges};
use antumbra_service::paging::{Cursor, Page, open_cursor, seal_cursor};
use antumbra_service::shadows::adapter::check_prefix;
use antumbra_service::shadows::id::{FLEET_SHARDS, fleet_of_device, fleet_prefix};
use antumbra_service::shadows::{Layout, ShadowId, StoreError};
use antumbra_wire::items::ShadowItem;
use antumbra_wire::items::index_keys::fleet_shard;

use super::{DynamoDbShadows, keys};
use crate::table::{Item, KeySpan, another_listing, outside};
use crate::tables::FLEET;

const PROJECTION: &str = "#PK, #SK, #fleetKey";

/// A shadow by its place in the index.
type Entry = (String, ShadowId);

impl DynamoDbShadows {
    pub(super) async fn list_fleet(
        &self,
        prefix: &str,
        within: &IdRanges,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<ShadowId>, StoreError> {
        check_prefix(prefix, limit)?;
        let after = cursor.map(|cursor| self.open_fleet_cursor(prefix, cursor));
        let mut after = after.transpose()?;
        let ids = within.below(prefix);
        let ranges: Vec<&IdRange> = ids.iter().collect();
        let first = after.as_ref().map_or(Some(0), |(_, last)| {
            let mut ranges = ranges.iter();
            ranges.position(|range| range.contains(last.id()))
        });
        let mut entries: Vec<Entry> = Vec::new();
        let mut more = false;
        for (at, range) in ranges.iter().enumerate().skip(first.ok_or_else(outside)?) {
            more = self
                .read_range(range, limit, &mut after, &mut entries)
                .await?;
            if entries.len() >= limit {
                more |= entries.len() > limit || at + 1 < ranges.len();
                break;
            }
        }
        entries.truncate(limit);
        let next = entries.last().filter(|_| more);
        Ok(Page {
            next: next.map(|(_, last)| self.fleet_cursor(prefix, last)),
            rows: entries.into_iter().map(|(_, shadow)| shadow).collect(),
        })
    }

    /// Reads entries of a range after an entry, until there are at least `limit`. Returns whether there may be more.
    async fn read_range(
        &self,
        range: &IdRange,
        limit: usize,
        after: &mut Option<Entry>,
        entries: &mut Vec<Entry>,
    ) -> Result<bool, StoreError> {
        let (start, shards) = match range {
            IdRange::StartsWith(start) => {
                let shards = (0..FLEET_SHARDS).map(fleet_shard).collect();
                (fleet_prefix(start).to_owned(), shards)
            }
            IdRange::Is(id) => {
                let (start, shard) = fleet_of_device(id);
                (start, vec![shard])
            }
        };
        let mut span = KeySpan::starting_with(&start);
        if let Some((key, last)) = after.as_ref()
            && range.contains(last.id())
        {
            span.from.clone_from(key);
        }
        loop {
            // Each shadow has up to two items.
            let count = 2 * limit.saturating_sub(entries.len());
            let index =
                self.table
                    .query_merged(Some(FLEET), Some(PROJECTION), &shards, &span, count);
            let read = index.await?;
            let found = read.items.into_iter();
            let mut found: Vec<Entry> = found
                .filter_map(|(key, item)| self.entry(key, &item))
                // The key of a long id does not hold all of it.
                .filter(|entry| range.contains(entry.1.id()))
                .filter(|entry| after.as_ref().is_none_or(|after| entry > after))
                .collect();
            found.sort_unstable();
            found.dedup();
            if let Some(last) = found.last() {
                *after = Some(last.clone());
            }
            entries.extend(found);
            let Some(up_to) = read.read_up_to else {
                return Ok(false);
            };
            if entries.len() >= limit {
                return Ok(true);
            }
            span.from = up_to;
        }
    }

    /// The shadow of an item; `None` if it does not belong to the layout.
    fn entry(&self, key: String, item: &Item) -> Option<Entry> {
        let (shadow, kind) = keys::shadow(&self.table.key(item)?)?;
        let is_combined = self.config.layout == Layout::Combined;
        let belongs = (kind == ShadowItem::Combined) == is_combined;
        belongs.then_some((key, shadow))
    }

    fn fleet_cursor(&self, prefix: &str, last: &ShadowId) -> Cursor {
        seal_cursor(&[&self.config.table, "fleet", prefix, last.id(), last.name()])
    }

    /// The entry that a cursor continues after.
    fn open_fleet_cursor(&self, prefix: &str, cursor: &Cursor) -> Result<Entry, StoreError> {
        let parts = open_cursor(cursor)?;
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let last = match parts[..] {
            [table, "fleet", of, id, name] if table == self.config.table && of == prefix => {
                ShadowId::named(id, name).ok()
            }
            _ => None,
        };
        let last = last.ok_or_else(another_listing)?;
        Ok((last.fleet_key(), last))
    }
}
