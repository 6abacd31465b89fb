//! Listings: in the order of id, name and state, from where the cursor says.

use std::collections::BTreeMap;
use std::ops::Bound;

use antumbra_service::paging::{open_cursor, seal_cursor};
use antumbra_service::shadows::{
    Cursor, DocumentSummary, Layout, ListQuery, Page, ShadowId, Snapshot, State, StoreError,
    StoredDocument,
};

/// Tells these cursors from those of other stores.
const KIND: &str = "memory";

/// The last document of a page; the next page starts behind it.
struct Position {
    shadow: ShadowId,
    state: State,
}

pub(crate) fn page(
    kept: &BTreeMap<ShadowId, Snapshot>,
    layout: Layout,
    query: &ListQuery,
    limit: usize,
    cursor: Option<&Cursor>,
) -> Result<Page<DocumentSummary>, StoreError> {
    let after = cursor.map(|cursor| open(cursor, query)).transpose()?;
    let first = match query {
        // No name sorts before this one.
        ListQuery::Of(id) => ShadowId::named(id.as_str(), "\0").ok(),
        ListQuery::All => None,
    };
    let start = after
        .as_ref()
        .map(|position| &position.shadow)
        .or(first.as_ref());
    let mut found = kept
        .range((
            start.map_or(Bound::Unbounded, Bound::Included),
            Bound::Unbounded,
        ))
        .take_while(|(shadow, _)| match query {
            ListQuery::Of(id) => shadow.id() == id,
            ListQuery::All => true,
        })
        .flat_map(|(shadow, snapshot)| documents(shadow, snapshot))
        .filter(|listed| match &after {
            Some(position) => (&listed.shadow, listed.state) > (&position.shadow, position.state),
            None => true,
        })
        .peekable();
    let room = match layout {
        Layout::Separate => limit,
        Layout::Combined => (limit / 2).max(1) * 2,
    };
    let documents: Vec<DocumentSummary> = found.by_ref().take(room).collect();
    let next = match (documents.last(), found.peek()) {
        (Some(last), Some(_)) => Some(seal(last, query)),
        _ => None,
    };
    Ok(Page {
        rows: documents,
        next,
    })
}

fn documents<'a>(
    shadow: &'a ShadowId,
    snapshot: &'a Snapshot,
) -> impl Iterator<Item = DocumentSummary> + 'a {
    let listed = |state, held: &StoredDocument| DocumentSummary {
        shadow: shadow.clone(),
        state,
        version: held.version,
        timestamp: held.timestamp,
        client_token: held.client_token.clone(),
    };
    let reported = snapshot.reported.iter();
    let desired = snapshot.desired.iter();
    reported
        .map(move |held| listed(State::Reported, held))
        .chain(desired.map(move |held| listed(State::Desired, held)))
}

/// What a listing is of, as it stands in a cursor.
fn subject(query: &ListQuery) -> [&str; 2] {
    match query {
        ListQuery::Of(id) => ["of", id],
        ListQuery::All => ["all", ""],
    }
}

fn seal(last: &DocumentSummary, query: &ListQuery) -> Cursor {
    let [kind, of] = subject(query);
    let (id, name) = (last.shadow.id(), last.shadow.name());
    seal_cursor(&[KIND, kind, of, id, name, last.state.as_str()])
}

fn open(cursor: &Cursor, query: &ListQuery) -> Result<Position, StoreError> {
    let parts = open_cursor(cursor)?;
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let [kind, of] = subject(query);
    let position = match parts[..] {
        [KIND, k, o, id, name, state] if (k, o) == (kind, of) => {
            ShadowId::named(id, name).ok().zip(
                [State::Reported, State::Desired]
                    .into_iter()
                    .find(|s| s.as_str() == state),
            )
        }
        _ => None,
    };
    let (shadow, state) = position
        .ok_or_else(|| StoreError::Invalid("the cursor belongs to another listing".to_owned()))?;
    Ok(Position { shadow, state })
}
