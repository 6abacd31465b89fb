//! Listings of the documents of a device, by one query. They read no documents.

use antumbra_service::shadows::adapter::check_list;
use antumbra_service::shadows::{Cursor, DocumentSummary, Layout, Page, StoreError};
use antumbra_wire::items::{ItemKind, ShadowItem};

use super::{DynamoDbShadows, item, keys};
use crate::table::{Item, Query};
use crate::value::text;

/// Items that one call examines at most.
const CALL_ITEMS: usize = 1000;
/// Factor by which the next call examines more items, if most of them belong to no shadow.
const GROWTH: usize = 4;
/// Calls for one page. A page that is not full by then is returned as it is, with a cursor.
const PAGE_CALLS: u32 = 8;
const PROJECTION: &str = "#PK, #SK, #version, #timestamp, #clientToken";
const NOT_DELETED: &str = "attribute_not_exists(#deletedAt)";

impl DynamoDbShadows {
    pub(super) async fn list_page(
        &self,
        id: &str,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<DocumentSummary>, StoreError> {
        check_list(id, limit)?;
        let listing = ["shadows", self.config.layout.as_str(), "of", id];
        let mut query = self.query(id);
        query.start = self.table.open_cursor(&listing, None, cursor)?;
        let per_item = match self.config.layout {
            Layout::Separate => 1,
            Layout::Combined => 2,
        };
        let room = (limit / per_item).max(1);
        let mut examine = room;
        let mut rows = Vec::new();
        let mut taken = 0;
        for _ in 0..PAGE_CALLS {
            let found = self.table.query_up_to(query.clone(), examine).await?;
            let mut items = found.items.into_iter();
            let mut last_taken = None;
            while taken < room
                && let Some(item) = items.next()
            {
                if let Some(summaries) = self.summaries(&item) {
                    rows.extend(summaries);
                    taken += 1;
                    last_taken = self.table.key(&item);
                }
            }
            query.start = match items.next() {
                Some(_) => last_taken.map(|key| self.table.attributes(&key)),
                None => found.last,
            };
            if query.start.is_none() || taken == room {
                break;
            }
            examine = (examine * GROWTH).min(CALL_ITEMS);
        }
        let last = query.start.as_ref();
        let next = self.table.seal_cursor(&listing, None, last)?;
        Ok(Page { rows, next })
    }

    fn query(&self, id: &str) -> Query {
        let kind = ItemKind::Shadow(ShadowItem::Reported);
        // This layout's items, and none of the other's; other programs' items may be among them.
        let (first, last) = match self.config.layout {
            Layout::Separate => (ShadowItem::Desired, ShadowItem::Reported),
            Layout::Combined => (ShadowItem::Combined, ShadowItem::Combined),
        };
        let prefix = |item| ItemKind::Shadow(item).sort_prefix();
        // The prefixes end with `#`, and `$` is the next character.
        Query::new("#PK = :pk AND #SK BETWEEN :from AND :to")
            .filter(NOT_DELETED)
            .projection(PROJECTION)
            .value(":pk", text(kind.partition(id)))
            .value(":from", text(prefix(first)))
            .value(":to", text(prefix(last).replace('#', "$")))
    }

    /// The documents of an item; `None` for items of other kinds.
    fn summaries(&self, item: &Item) -> Option<Vec<DocumentSummary>> {
        let (shadow, kind) = keys::shadow(&self.table.key(item)?)?;
        // One foreign item must not fail the page.
        let metadata = item::metadata(item)
            .inspect_err(|error| tracing::warn!(%error, %shadow, "skipped an item in a listing"))
            .ok()?;
        let summaries = kind.states().iter().map(|state| DocumentSummary {
            shadow: shadow.clone(),
            state: *state,
            version: metadata.version,
            timestamp: metadata.timestamp,
            client_token: metadata.client_token.clone(),
        });
        Some(summaries.collect())
    }
}
