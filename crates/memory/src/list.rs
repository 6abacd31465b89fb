//! Listings in the order of id, name and state.

use std::ops::Bound;

use antumbra_service::access::IdRanges;
use antumbra_service::paging::{open_cursor, seal_cursor};
use antumbra_service::shadows::{
    Cursor, DocumentSummary, Layout, Page, ShadowId, State, StoreError,
};

use crate::{Slot, Slots};

/// First part of this store's cursors.
const STORE: &str = "memory";

pub(crate) fn page(
    slots: &Slots,
    layout: Layout,
    id: &str,
    limit: usize,
    cursor: Option<&Cursor>,
) -> Result<Page<DocumentSummary>, StoreError> {
    let start = match cursor {
        Some(cursor) => Bound::Excluded(open(cursor, id)?),
        // No name sorts before this one.
        None => match ShadowId::named(id, "\0") {
            Ok(first) => Bound::Included((first, State::Reported)),
            Err(_) => Bound::Unbounded,
        },
    };
    let mut found = slots
        .range((start, Bound::Unbounded))
        .take_while(|((shadow, _), _)| shadow.id() == id)
        .filter_map(|((shadow, state), slot)| match slot {
            Slot::Deleted { .. } => None,
            Slot::Stored(stored) => Some(DocumentSummary {
                shadow: shadow.clone(),
                state: *state,
                version: stored.version,
                timestamp: stored.timestamp,
                client_token: stored.client_token.clone(),
            }),
        })
        .peekable();
    let room = match layout {
        Layout::Separate => limit,
        Layout::Combined => (limit / 2).max(1) * 2,
    };
    let rows: Vec<DocumentSummary> = found.by_ref().take(room).collect();
    let next = match (rows.last(), found.peek()) {
        (Some(last), Some(_)) => Some(seal(last)),
        _ => None,
    };
    Ok(Page { rows, next })
}

/// The shadows whose id starts with a text and is one of `within`, in the order of id and name.
pub(crate) fn by_prefix(
    slots: &Slots,
    prefix: &str,
    within: &IdRanges,
    limit: usize,
    cursor: Option<&Cursor>,
) -> Result<Page<ShadowId>, StoreError> {
    let ids = within.below(prefix);
    let after = cursor.map(|cursor| {
        let parts = open_cursor(cursor)?;
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let last = match parts[..] {
            [STORE, "fleet", of, id, name] if of == prefix && ids.contains(id) => {
                ShadowId::named(id, name).ok()
            }
            _ => None,
        };
        last.ok_or_else(|| StoreError::Invalid("the cursor belongs to another listing".to_owned()))
    });
    let after = after.transpose()?;
    let stored = slots
        .iter()
        .filter(|(_, slot)| matches!(slot, Slot::Stored(_)));
    let shadows = stored.map(|((shadow, _), _)| shadow);
    let mut rows: Vec<ShadowId> = shadows
        .filter(|shadow| ids.contains(shadow.id()))
        .filter(|shadow| after.as_ref().is_none_or(|after| *shadow > after))
        .cloned()
        .collect();
    rows.dedup();
    let more = rows.len() > limit;
    rows.truncate(limit);
    let next = rows.last().filter(|_| more);
    let next = next.map(|last| seal_cursor(&[STORE, "fleet", prefix, last.id(), last.name()]));
    Ok(Page { rows, next })
}

fn seal(last: &DocumentSummary) -> Cursor {
    let shadow = &last.shadow;
    seal_cursor(&[STORE, "of", shadow.id(), shadow.name(), last.state.as_str()])
}

/// The document that a cursor continues after.
fn open(cursor: &Cursor, id: &str) -> Result<(ShadowId, State), StoreError> {
    let parts = open_cursor(cursor)?;
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let position = match parts[..] {
        [STORE, "of", of, name, state] if of == id => {
            let mut states = [State::Reported, State::Desired].into_iter();
            let state = states.find(|known| known.as_str() == state);
            ShadowId::named(id, name).ok().zip(state)
        }
        _ => None,
    };
    position.ok_or_else(|| StoreError::Invalid("the cursor belongs to another listing".to_owned()))
}
