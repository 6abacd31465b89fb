//! Listings in the order of a key, from a table or an index whose items are spread over shards: one query per shard,
//! merged by key.
//!
//! A query reads keys of one range only: items outside it are not read, so they cost nothing and cannot be shown.

use std::ops::Bound;

use antumbra_service::access::{IdRange, IdRanges};
use antumbra_service::paging::{Cursor, Page, open_cursor, seal_cursor};
use antumbra_service::store::StoreError;
use futures_util::future::try_join_all;

use super::{Item, Query, Table, another_listing};
use crate::tables::Index;
use crate::value::{read_text, text};

/// Items that a query for a shard examines beside its share of the page.
const SPARE_ITEMS: usize = 16;
/// Items that one query examines at most.
const CALL_ITEMS: usize = 1000;
/// Factor by which the next queries examine more items, if few of them are selected.
const GROWTH: usize = 4;
/// Rounds of queries for one page of a range. A page that is not full by then is returned as it is, with a cursor.
const PAGE_ROUNDS: u32 = 8;

/// Keys from one text to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeySpan {
    pub(crate) from: String,
    pub(crate) end: Bound<String>,
}

impl KeySpan {
    /// The keys that start with a text.
    pub(crate) fn starting_with(start: &str) -> KeySpan {
        KeySpan {
            from: start.to_owned(),
            end: after_all(start).map_or(Bound::Unbounded, Bound::Excluded),
        }
    }

    /// The ids of a range, as keys.
    fn of(range: &IdRange) -> KeySpan {
        match range {
            IdRange::StartsWith(start) => KeySpan::starting_with(start),
            IdRange::Is(id) => KeySpan {
                from: id.clone(),
                end: Bound::Included(id.clone()),
            },
        }
    }

    fn ends_before(&self, key: &str) -> bool {
        match &self.end {
            Bound::Unbounded => false,
            Bound::Included(last) => key > last.as_str(),
            Bound::Excluded(end) => key >= end.as_str(),
        }
    }
}

/// The first text after all that start with this one; `None` if no text is.
fn after_all(start: &str) -> Option<String> {
    let mut end: Vec<char> = start.chars().collect();
    while let Some(last) = end.pop() {
        // The next character; not every code point is one.
        let next = (u32::from(last) + 1..=u32::from(char::MAX)).find_map(char::from_u32);
        if let Some(next) = next {
            end.push(next);
            return Some(end.into_iter().collect());
        }
    }
    None
}

/// Items of all shards in the order of their keys.
pub(crate) struct Merged {
    /// All items up to the key that was read by every shard; none beyond it.
    pub(crate) items: Vec<(String, Item)>,
    /// That key; `None` if the span was read to its end.
    pub(crate) read_up_to: Option<String>,
}

/// A listing by id.
pub(crate) struct OrderedListing<'a> {
    /// Texts that identify it, with all its filters: a cursor of another one is rejected.
    pub(crate) name: &'a [&'a str],
    /// Index to read; `None` for the table itself, which is read consistently.
    pub(crate) index: Option<Index<'static>>,
    /// Partition keys of the shards.
    pub(crate) shards: Vec<String>,
    /// The shard of an id.
    pub(crate) shard_of: &'a (dyn Fn(&str) -> usize + Send + Sync),
    pub(crate) ids: IdRanges,
    pub(crate) limit: usize,
}

impl Table {
    /// Reads shards from a key on, each at least one whole key beyond it, and about `count` items.
    pub(crate) async fn query_merged(
        &self,
        index: Option<Index<'static>>,
        projection: Option<&str>,
        shards: &[String],
        span: &KeySpan,
        count: usize,
    ) -> Result<Merged, StoreError> {
        let own = (self.schema.partition_key, self.schema.sort_key);
        let (partition, sort) = index.map_or(own, |index| (index.partition_key, index.sort_key.0));
        let end = match &span.end {
            Bound::Unbounded => None,
            // `BETWEEN` includes its end. One that is excluded is left out below.
            Bound::Included(end) | Bound::Excluded(end) => Some(end),
        };
        // An empty text is not a key.
        let condition = match (&span.from[..], end) {
            ("", _) => format!("#{partition} = :shard"),
            (_, None) => format!("#{partition} = :shard AND #{sort} >= :from"),
            (_, Some(_)) => format!("#{partition} = :shard AND #{sort} BETWEEN :from AND :end"),
        };
        // The number of items of a range differs between shards by about the square root of their share.
        let share = count.div_ceil(shards.len().max(1));
        let limit = (share + 4 * share.isqrt() + SPARE_ITEMS).min(CALL_ITEMS);
        let query = |shard: &String| {
            let mut query = Query {
                index,
                consistent: index.is_none(),
                projection: projection.map(str::to_owned),
                limit: Some(limit),
                ..Query::new(&condition[..]).value(":shard", text(shard))
            };
            if !span.from.is_empty() {
                query = query.value(":from", text(&span.from));
                if let Some(end) = end {
                    query = query.value(":end", text(end));
                }
            }
            self.read_shard(query, sort, &span.from)
        };
        let read = try_join_all(shards.iter().map(query)).await?;
        // Beyond the shard that was read least far, items of it may be missing.
        let read_up_to = read.iter().filter_map(|(_, up_to)| up_to.as_ref());
        let read_up_to = read_up_to.min().cloned();
        let is_within = |key: &String| {
            !span.ends_before(key) && read_up_to.as_ref().is_none_or(|most| key <= most)
        };
        let items = read.into_iter().flat_map(|(items, _)| items);
        let mut items: Vec<(String, Item)> = items.filter(|(key, _)| is_within(key)).collect();
        items.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(Merged { items, read_up_to })
    }

    /// Reads a shard until at least one key after `from` was read with all its items. Returns the items, and the last
    /// key that was read whole, unless the shard has no more.
    async fn read_shard(
        &self,
        mut query: Query,
        sort: &str,
        from: &str,
    ) -> Result<(Vec<(String, Item)>, Option<String>), StoreError> {
        let mut items: Vec<(String, Item)> = Vec::new();
        loop {
            let found = self.query(query.clone()).await?;
            for item in found.items {
                items.push((read_text(&item, sort)?.to_owned(), item));
            }
            query.start = found.last;
            if query.start.is_none() {
                return Ok((items, None));
            }
            // The items of the last key may not have been read all.
            let last = items.last().map(|(key, _)| key);
            let mut keys = items.iter().rev().map(|(key, _)| key);
            let whole = keys.find(|key| Some(*key) != last);
            if let Some(whole) = whole.filter(|key| key.as_str() > from).cloned() {
                return Ok((items, Some(whole)));
            }
        }
    }

    /// Returns one page of a listing by id, whose ids are the sort keys of the index. `select` turns items into rows and
    /// leaves out those that the filters of the listing do not select.
    pub(crate) async fn ordered_page<R, F>(
        &self,
        listing: &OrderedListing<'_>,
        cursor: Option<&Cursor>,
        select: impl Fn(Vec<(String, Item)>) -> F,
    ) -> Result<Page<R>, StoreError>
    where
        F: Future<Output = Result<Vec<(String, R)>, StoreError>>,
    {
        let mut last = cursor
            .map(|cursor| self.open_id(listing, cursor))
            .transpose()?;
        let mut page: Vec<(String, R)> = Vec::new();
        let mut count = listing.limit;
        let mut rounds = 0;
        let ranges: Vec<&IdRange> = listing.ids.iter().collect();
        let first = last.as_ref().map_or(Some(0), |last| {
            ranges.iter().position(|range| range.contains(last))
        });
        let first = first.ok_or_else(outside)?;
        for (at, range) in ranges.iter().enumerate().skip(first) {
            let own = match range {
                IdRange::StartsWith(_) => None,
                IdRange::Is(id) => listing.shards.get((listing.shard_of)(id)),
            };
            let shards = own.map_or(&listing.shards[..], std::slice::from_ref);
            let mut span = KeySpan::of(range);
            loop {
                if let Some(last) = last.as_ref().filter(|last| range.contains(last)) {
                    span.from.clone_from(last);
                }
                let read = self
                    .query_merged(listing.index, None, shards, &span, count)
                    .await?;
                let is_new = |id: &String| last.as_ref().is_none_or(|last| id > last);
                let new = read.items.into_iter();
                let new = new
                    .filter(|(id, _)| range.contains(id) && is_new(id))
                    .collect();
                page.extend(select(new).await?);
                let more = read.read_up_to.is_some() || at + 1 < ranges.len();
                if page.len() > listing.limit || (page.len() == listing.limit && more) {
                    page.truncate(listing.limit);
                    let next = page.last().map(|(id, _)| self.seal_id(listing, id));
                    let rows = page.into_iter().map(|(_, row)| row).collect();
                    return Ok(Page { rows, next });
                }
                let Some(up_to) = read.read_up_to else {
                    break;
                };
                rounds += 1;
                if rounds == PAGE_ROUNDS {
                    let next = Some(self.seal_id(listing, &up_to));
                    let rows = page.into_iter().map(|(_, row)| row).collect();
                    return Ok(Page { rows, next });
                }
                last = Some(up_to);
                count = count.saturating_mul(GROWTH);
            }
        }
        let rows = page.into_iter().map(|(_, row)| row).collect();
        Ok(Page { rows, next: None })
    }

    fn seal_id(&self, listing: &OrderedListing<'_>, last: &str) -> Cursor {
        let mut parts = vec![self.name.as_str()];
        parts.extend(listing.name);
        parts.push(last);
        seal_cursor(&parts)
    }

    /// The id that a cursor continues after.
    fn open_id(&self, listing: &OrderedListing<'_>, cursor: &Cursor) -> Result<String, StoreError> {
        let parts = open_cursor(cursor)?;
        match &parts[..] {
            [table, name @ .., last] if *table == self.name && *name == *listing.name => {
                Ok(last.clone())
            }
            _ => Err(another_listing()),
        }
    }
}

/// The error of a cursor whose id is not among those of the listing.
pub(crate) fn outside() -> StoreError {
    StoreError::Invalid("the cursor points outside of the listing".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_end_before_the_first_text_that_does_not_start_with_theirs() {
        for (start, end) in [
            ("a#", Some("a$")),
            ("a", Some("b")),
            ("a\u{10ffff}", Some("b")),
            ("\u{d7ff}", Some("\u{e000}")),
            ("", None),
            ("\u{10ffff}", None),
        ] {
            let span = KeySpan::starting_with(start);
            let end = end.map_or(Bound::Unbounded, |end| Bound::Excluded(end.to_owned()));
            assert_eq!(span.end, end, "{start:?}");
            for more in ["", "0", "\u{0}", "\u{10ffff}\u{10ffff}"] {
                let key = format!("{start}{more}");
                let is_within = key >= span.from && !span.ends_before(&key);
                assert!(is_within, "{start:?} {more:?}");
            }
        }
    }

    #[test]
    fn the_span_of_one_id_ends_with_it() {
        let span = KeySpan::of(&IdRange::Is("a#1".to_owned()));
        assert_eq!(span.from, "a#1");
        assert!(!span.ends_before("a#1") && span.ends_before("a#10"));
    }
}
