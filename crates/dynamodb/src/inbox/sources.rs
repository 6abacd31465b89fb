//! Sources of messages: one item each with the hour of the last contact, in shards.

use antumbra_service::inbox::{Contact, Source, SourceTracker, Sources, contact_hour};
use antumbra_service::paging::{Cursor, Page, open_cursor, page_limit, seal_cursor};
use antumbra_service::shard;
use antumbra_service::store::StoreError;
use antumbra_shadow::Timestamp;
use antumbra_wire::items::{ItemKind, MESSAGE_ID};
use futures_util::future::try_join_all;

use super::DynamoDbInbox;
use crate::table::{Item, Items, Key, Query, Write};
use crate::value::{corrupt, read_text, text};

const LAST_CONTACT: &str = "lastContact";
/// Shards of the sources. The filter of the messages table's stream names them.
pub const SOURCE_SHARDS: u32 = 16;
/// Items that a call for a shard examines beside its share of the page.
const SPARE_ITEMS: usize = 16;

impl SourceTracker for DynamoDbInbox {
    async fn touch(&self, source: &Source, at: Timestamp) -> Result<(), StoreError> {
        // In whole seconds: the texts sort by time.
        let hour = text(contact_hour(source, at).to_string());
        let shard = shard(source.as_str(), SOURCE_SHARDS).to_string();
        let key = Key::new(ItemKind::InboxSource, &shard, source.as_str());
        let mut item = self.table.attributes(&key);
        item.insert(LAST_CONTACT.to_owned(), hour.clone());
        let put = Write::put(item)
            .condition("attribute_not_exists(#lastContact) OR #lastContact < :hour")
            .value(":hour", hour);
        self.table.write(put).await.map(drop)
    }
}

impl Sources for DynamoDbInbox {
    async fn sources(
        &self,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<Contact>, StoreError> {
        page_limit(limit)?;
        let after = cursor.map(|cursor| self.open_sources_cursor(cursor));
        let after = after.transpose()?;
        let shards = (0..SOURCE_SHARDS).map(|shard| self.read_shard(shard, limit, after.as_ref()));
        let shards = try_join_all(shards).await?;
        // Beyond the shard that was read least far, sources of it may be missing.
        let last_read = shards.iter().filter_map(|found| found.last.as_ref());
        let last_read = last_read.filter_map(|key| read_text(key, MESSAGE_ID).ok());
        let last_read = last_read.min().map(str::to_owned);
        let items = shards.into_iter().flat_map(|found| found.items);
        let mut items: Vec<(String, Item)> = items
            .filter_map(|item| Some((read_text(&item, MESSAGE_ID).ok()?.to_owned(), item)))
            .filter(|(source, _)| last_read.as_ref().is_none_or(|last| source <= last))
            .collect();
        items.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        let more = last_read.is_some() || items.len() > limit;
        items.truncate(limit);
        let next = items.last().filter(|_| more);
        Ok(Page {
            next: next.map(|(last, _)| seal_cursor(&[self.table.name(), "sources", last])),
            rows: items.iter().filter_map(|(_, item)| contact(item)).collect(),
        })
    }
}

impl DynamoDbInbox {
    /// Reads a shard after the last source of the page before: about as many as the shard has among the next page.
    async fn read_shard(
        &self,
        shard: u32,
        limit: usize,
        after: Option<&String>,
    ) -> Result<Items, StoreError> {
        let condition = match after {
            Some(_) => "#uuid = :shard AND #messageId > :after",
            None => "#uuid = :shard",
        };
        let shard = ItemKind::InboxSource.partition(&shard.to_string());
        let mut query = Query::new(condition)
            .consistent()
            .value(":shard", text(shard));
        if let Some(after) = after {
            query = query.value(":after", text(after));
        }
        let count = 2 * limit.div_ceil(SOURCE_SHARDS as usize) + SPARE_ITEMS;
        self.table.query_up_to(query, count).await
    }

    /// The source that a cursor continues after.
    fn open_sources_cursor(&self, cursor: &Cursor) -> Result<String, StoreError> {
        let parts = open_cursor(cursor)?;
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        match parts[..] {
            [table, "sources", last] if table == self.table.name() && !last.is_empty() => {
                Ok(last.to_owned())
            }
            _ => {
                let other = "the cursor belongs to another listing";
                Err(StoreError::Invalid(other.to_owned()))
            }
        }
    }
}

/// Decodes a source. Items that cannot be decoded are skipped; one foreign item must not fail the page.
fn contact(item: &Item) -> Option<Contact> {
    let decode = || -> Result<Contact, StoreError> {
        let source = Source::new(read_text(item, MESSAGE_ID)?);
        let last_contact = Timestamp::parse(read_text(item, LAST_CONTACT)?);
        Ok(Contact {
            source: source.map_err(|error| corrupt(MESSAGE_ID, error))?,
            last_contact: last_contact.ok_or_else(|| corrupt(LAST_CONTACT, "not a time"))?,
        })
    };
    decode()
        .inspect_err(|error| tracing::warn!(%error, "skipped a source that cannot be decoded"))
        .ok()
}
