//! Listings of the documents of a device, by one query. They read no documents.

use antumbra_service::shadows::adapter::check_list;
use antumbra_service::shadows::{Cursor, DocumentSummary, Layout, Page, StoreError};
use antumbra_wire::items::{ItemKind, ShadowItem};

use super::{DynamoDbShadows, item, keys};
use crate::table::{Item, Query};

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
        let per_item = match self.config.layout {
            Layout::Separate => 1,
            Layout::Combined => 2,
        };
        let select = |items: Vec<Item>| async {
            let items = items.into_iter();
            let summaries = items.filter_map(|item| Some((self.summaries(&item)?, item)));
            Ok(summaries.map(|(rows, item)| (item, rows)).collect())
        };
        let (query, items) = (self.query(id), (limit / per_item).max(1));
        let page = self
            .table
            .selected_page(&listing, query, items, cursor, select);
        let Page { rows, next } = page.await?;
        let rows = rows.into_iter().flatten().collect();
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
        let to = prefix(last).replace('#', "$");
        Query::between(kind.partition(id), prefix(first), to)
            .filter(NOT_DELETED)
            .projection(PROJECTION)
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
