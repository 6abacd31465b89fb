//! Queries over the messages of a source: oldest and newest, listings.

use super::{MessageId, MessageIndex, Order, Range, Source};
use crate::fnv::fnv1a;
use crate::paging::{Cursor, PAGE_LIMIT, Page, open_cursor, seal_cursor};
use crate::store::StoreError;

/// The oldest and the newest message of a source; both are the same if it has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    pub oldest: MessageId,
    pub newest: MessageId,
}

/// Returns the oldest and the newest message of a source; `None` if it has none. Makes two concurrent reads.
pub async fn span(query: &impl MessageIndex, source: &Source) -> Result<Option<Span>, StoreError> {
    let (oldest, newest) = tokio::try_join!(query.oldest(source), query.newest(source))?;
    // Between the two reads the only message may have been stored or deleted.
    Ok(oldest
        .zip(newest)
        .map(|(oldest, newest)| Span { oldest, newest }))
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListRequest {
    /// Smallest id.
    pub from: Option<MessageId>,
    /// Largest id.
    pub to: Option<MessageId>,
    pub order: Order,
    /// Maximum number of ids, 1 to 1000.
    pub limit: usize,
    /// Cursor of an earlier page of the same listing.
    pub cursor: Option<Cursor>,
}

/// Cuts a page of ids to its first `count`, with a cursor that continues after them, for responses that
/// cannot hold all of it.
pub fn shorten_page(
    mut page: Page<MessageId>,
    source: &Source,
    request: &ListRequest,
    count: usize,
) -> Page<MessageId> {
    if count < page.rows.len() {
        page.rows.truncate(count);
        page.next = page.rows.last().map(|last| seal(source, request, last));
    }
    page
}

/// Lists ids, in one read. A page that ends with the last id has no cursor, unless it is as long as a page can be.
pub async fn list(
    query: &impl MessageIndex,
    source: &Source,
    request: &ListRequest,
) -> Result<Page<MessageId>, StoreError> {
    let after = match &request.cursor {
        Some(cursor) => Some(open(cursor, source, request)?),
        None => None,
    };
    let range = Range {
        from: request.from.clone(),
        to: request.to.clone(),
        order: request.order,
        after,
    };
    // One more than asked for tells whether there is another page.
    let wanted = (request.limit + 1).min(PAGE_LIMIT.max(request.limit));
    let mut ids = query.ids(source, &range, wanted).await?;
    let has_more = ids.len() >= wanted;
    ids.truncate(request.limit);
    let next = ids.last().filter(|_| has_more);
    let next = next.map(|last| seal(source, request, last));
    Ok(Page { rows: ids, next })
}

const KIND: &str = "inbox";

fn word(order: Order) -> &'static str {
    match order {
        Order::OldestFirst => "oldest",
        Order::NewestFirst => "newest",
    }
}

/// A short text for the bounds of a listing.
fn bounds(request: &ListRequest) -> String {
    let bounds = [&request.from, &request.to];
    let bounds = bounds.map(|id| id.as_ref().map(MessageId::as_str));
    let hash = fnv1a(serde_json::json!(bounds).to_string().as_bytes());
    format!("{hash:016x}")
}

fn seal(source: &Source, request: &ListRequest, last: &MessageId) -> Cursor {
    let order = word(request.order);
    seal_cursor(&[
        KIND,
        source.as_str(),
        order,
        &bounds(request),
        last.as_str(),
    ])
}

fn open(cursor: &Cursor, source: &Source, request: &ListRequest) -> Result<MessageId, StoreError> {
    let parts = open_cursor(cursor)?;
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let bounds = bounds(request);
    let listing = [KIND, source.as_str(), word(request.order), &bounds];
    match parts.strip_prefix(&listing) {
        Some([last]) => {
            MessageId::new(*last).map_err(|error| StoreError::Invalid(error.to_string()))
        }
        _ => Err(StoreError::Invalid(
            "the cursor belongs to another listing".to_owned(),
        )),
    }
}
