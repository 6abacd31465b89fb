//! Sources of messages: one item each with the hour of the last contact.

use antumbra_service::inbox::{Contact, Source, SourceTracker, Sources};
use antumbra_service::paging::{Cursor, Page, page_limit};
use antumbra_service::store::StoreError;
use antumbra_shadow::Timestamp;
use antumbra_wire::items::{ItemKind, MESSAGE_ID};

use super::DynamoDbInbox;
use crate::table::{Item, Key, Query, Write};
use crate::value::{corrupt, read_text, text};

const LAST_CONTACT: &str = "lastContact";
const HOUR_NANOSECONDS: i128 = 3_600_000_000_000;

impl SourceTracker for DynamoDbInbox {
    async fn touch(&self, source: &Source, at: Timestamp) -> Result<(), StoreError> {
        let past = at.nanoseconds().rem_euclid(HOUR_NANOSECONDS);
        let hour = Timestamp::from_nanoseconds(at.nanoseconds() - past);
        let hour = text(hour.to_string());
        let key = Key::new(ItemKind::InboxSource, "", source.as_str());
        let mut item = self.table.attributes(&key);
        item.insert(LAST_CONTACT.to_owned(), hour.clone());
        // The text of whole hours sorts by time.
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
        let query = Query::new("#uuid = :sources")
            .consistent()
            .value(":sources", text(ItemKind::InboxSource.partition("")));
        let page = self.table.page(&["sources"], query, limit, cursor).await?;
        Ok(page.filter_map(|item| contact(&item)))
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
