//! Sources of messages: one item each with the hour of the last contact, in shards.

use antumbra_service::access::IdRanges;
use antumbra_service::inbox::{Contact, Source, SourceTracker, Sources, contact_hour};
use antumbra_service::paging::{Cursor, Page, page_limit};
use antumbra_service::shard;
use antumbra_service::store::StoreError;
use antumbra_shadow::Timestamp;
use antumbra_wire::items::{ItemKind, MESSAGE_ID};

use super::DynamoDbInbox;
use crate::table::{Item, Key, OrderedListing, Write};
use crate::value::{corrupt, read_text, text};

const LAST_CONTACT: &str = "lastContact";
/// Shards of the sources. The filter of the messages table's stream names them.
pub const SOURCE_SHARDS: u32 = 16;

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
        let listing = OrderedListing {
            name: &["sources"],
            index: None,
            shards: (0..SOURCE_SHARDS).map(partition).collect(),
            shard_of: &|source| shard(source, SOURCE_SHARDS) as usize,
            ids: IdRanges::all(),
            limit,
        };
        let decode = |items: Vec<(String, Item)>| async {
            let items = items.into_iter();
            let contacts = items.filter_map(|(source, item)| Some((source, contact(&item)?)));
            Ok(contacts.collect())
        };
        self.table.ordered_page(&listing, cursor, decode).await
    }
}

/// Partition key of a shard.
fn partition(shard: u32) -> String {
    ItemKind::InboxSource.partition(&shard.to_string())
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
