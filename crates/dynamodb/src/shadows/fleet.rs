//! Listings by id, from the index `Fleet`: one query per shard, merged by key.
//!
//! A document has the key of its shadow, so both documents are next to each other in one shard. Two shadows have the
//! same key only if they were named for it; a cursor names the last shadow and not only its key, so that they are all
//! listed.

use antumbra_service::paging::{Cursor, Page, open_cursor, seal_cursor};
use antumbra_service::shadows::adapter::check_prefix;
use antumbra_service::shadows::id::{FLEET_SHARDS, fleet_prefix};
use antumbra_service::shadows::{Layout, ShadowId, StoreError};
use antumbra_wire::items::ShadowItem;
use antumbra_wire::items::attributes::FLEET_KEY;
use antumbra_wire::items::index_keys::fleet_shard;
use futures_util::future::try_join_all;

use super::{DynamoDbShadows, keys};
use crate::table::Query;
use crate::tables::FLEET;
use crate::value::{read_text, text};

const PROJECTION: &str = "#PK, #SK, #fleetKey";
/// Items that a call for a shard examines beside its share of the page.
const SPARE_ITEMS: usize = 16;

/// A shadow by its place in the index.
type Entry = (String, ShadowId);

/// The entries that were read of a shard.
struct Shard {
    entries: Vec<Entry>,
    /// Key up to which all entries were read; `None` if all of the shard were.
    read_up_to: Option<String>,
}

impl DynamoDbShadows {
    pub(super) async fn list_fleet(
        &self,
        prefix: &str,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<ShadowId>, StoreError> {
        check_prefix(prefix, limit)?;
        let after = cursor.map(|cursor| self.open_fleet_cursor(prefix, cursor));
        let after = after.transpose()?;
        let shards =
            (0..FLEET_SHARDS).map(|shard| self.read_shard(shard, prefix, limit, after.as_ref()));
        let shards = try_join_all(shards).await?;
        // Beyond the shard that was read least far, entries of it may be missing.
        let read_up_to = shards.iter().filter_map(|shard| shard.read_up_to.as_ref());
        let read_up_to = read_up_to.min().cloned();
        let mut entries: Vec<Entry> = shards
            .into_iter()
            .flat_map(|shard| shard.entries)
            .filter(|(key, _)| read_up_to.as_ref().is_none_or(|most| key <= most))
            .collect();
        entries.sort_unstable();
        entries.dedup();
        let more = read_up_to.is_some() || entries.len() > limit;
        entries.truncate(limit);
        let next = entries.last().filter(|_| more);
        Ok(Page {
            next: next.map(|(_, last)| self.fleet_cursor(prefix, last)),
            rows: entries.into_iter().map(|(_, shadow)| shadow).collect(),
        })
    }

    /// Reads a shard from the first entry of the page on: about as many as the shard has among them, at least one key.
    async fn read_shard(
        &self,
        shard: u32,
        prefix: &str,
        limit: usize,
        after: Option<&Entry>,
    ) -> Result<Shard, StoreError> {
        let start = fleet_prefix(prefix);
        let from = after.map_or(start, |(key, _)| key.as_str());
        // An empty text is not a key.
        let condition = match from {
            "" => "#fleetShard = :shard",
            _ => "#fleetShard = :shard AND #fleetKey >= :from",
        };
        let mut query = Query {
            index: Some(FLEET),
            projection: Some(PROJECTION.to_owned()),
            limit: Some(2 * limit.div_ceil(FLEET_SHARDS as usize) + SPARE_ITEMS),
            ..Query::new(condition).value(":shard", text(fleet_shard(shard)))
        };
        if !from.is_empty() {
            query = query.value(":from", text(from));
        }
        let mut entries: Vec<Entry> = Vec::new();
        loop {
            let found = self.table.query(query.clone()).await?;
            for item in &found.items {
                let key = read_text(item, FLEET_KEY)?;
                if !key.starts_with(start) {
                    return Ok(Shard {
                        entries,
                        read_up_to: None,
                    });
                }
                let Some((shadow, kind)) = self.table.key(item).and_then(|key| keys::shadow(&key))
                else {
                    continue;
                };
                let entry = (key.to_owned(), shadow);
                let is_next = after.is_none_or(|after| entry > *after);
                // The key of a long id does not hold all of it.
                if is_next && self.holds(kind) && entry.1.id().starts_with(prefix) {
                    entries.push(entry);
                }
            }
            query.start = found.last;
            if query.start.is_none() {
                return Ok(Shard {
                    entries,
                    read_up_to: None,
                });
            }
            // The items of the last key may not have been read all.
            let last = entries.last().map(|(key, _)| key);
            let mut keys = entries.iter().rev().map(|(key, _)| key);
            if let Some(read_up_to) = keys.find(|key| Some(*key) != last).cloned() {
                return Ok(Shard {
                    entries,
                    read_up_to: Some(read_up_to),
                });
            }
        }
    }

    /// Returns whether items of this kind belong to the layout.
    fn holds(&self, kind: ShadowItem) -> bool {
        (kind == ShadowItem::Combined) == (self.config.layout == Layout::Combined)
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
        let other = || StoreError::Invalid("the cursor belongs to another listing".to_owned());
        let last = last.ok_or_else(other)?;
        Ok((last.fleet_key(), last))
    }
}
