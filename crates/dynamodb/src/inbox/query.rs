//! Ids of messages in order, from the index without tombstones.

use antumbra_service::inbox::{MESSAGE_ID_BYTES, MessageId, MessageIndex, Order, Range, Source};
use antumbra_service::paging::page_limit;
use antumbra_service::store::StoreError;

use super::DynamoDbInbox;
use super::item::UNDELETED_ID;
use crate::table::Query;
use crate::tables::UNDELETED;
use crate::value::{read_text, text};

impl MessageIndex for DynamoDbInbox {
    async fn ids(
        &self,
        source: &Source,
        range: &Range,
        limit: usize,
    ) -> Result<Vec<MessageId>, StoreError> {
        page_limit(limit)?;
        let Some(bounds) = Bounds::of(range) else {
            return Ok(Vec::new());
        };
        let mut query = Query {
            index: Some(UNDELETED),
            projection: Some("#undeletedId".to_owned()),
            consistent: true,
            descending: range.order == Order::NewestFirst,
            ..bounds.query(source)
        };
        let mut ids = Vec::new();
        loop {
            query.limit = Some(limit - ids.len() + usize::from(bounds.excluded.is_some()));
            let found = self.table.query(query.clone()).await?;
            for item in &found.items {
                let id = read_text(item, UNDELETED_ID)?;
                if bounds.excluded.as_deref() == Some(id) {
                    continue;
                }
                match MessageId::new(id) {
                    Ok(id) => ids.push(id),
                    // One foreign item must not fail the page.
                    Err(error) => tracing::warn!(%error, %source, "skipped an invalid message id"),
                }
            }
            query.start = found.last;
            if ids.len() >= limit || query.start.is_none() {
                ids.truncate(limit);
                return Ok(ids);
            }
        }
    }
}

/// Bounds of the ids to list, both inclusive.
#[derive(Debug, PartialEq, Eq)]
struct Bounds {
    from: Option<String>,
    to: Option<String>,
    /// Exclusive bound: this id is skipped.
    excluded: Option<String>,
}

impl Bounds {
    /// `None` if no id can be between the bounds; DynamoDB rejects such a query.
    fn of(range: &Range) -> Option<Bounds> {
        let plain = |id: &Option<MessageId>| id.as_ref().map(|id| id.as_str().to_owned());
        let (mut from, mut to, mut excluded) = (plain(&range.from), plain(&range.to), None);
        match (plain(&range.after), range.order) {
            (None, _) => {}
            (Some(after), Order::OldestFirst) => {
                let next = Some(successor(after));
                from = from.max(next);
            }
            (Some(after), Order::NewestFirst) => {
                if to.as_ref().is_none_or(|to| *to >= after) {
                    excluded = Some(after.clone());
                    to = Some(after);
                }
            }
        }
        let empty = from.iter().zip(&to).any(|(from, to)| from > to);
        (!empty).then_some(Bounds { from, to, excluded })
    }

    fn query(&self, source: &Source) -> Query {
        let mut query = Query::new(match (&self.from, &self.to) {
            (None, None) => "#uuid = :source",
            (Some(_), None) => "#uuid = :source AND #undeletedId >= :from",
            (None, Some(_)) => "#uuid = :source AND #undeletedId <= :to",
            (Some(_), Some(_)) => "#uuid = :source AND #undeletedId BETWEEN :from AND :to",
        })
        .value(":source", text(source.as_str()));
        for (name, bound) in [(":from", &self.from), (":to", &self.to)] {
            if let Some(bound) = bound {
                query = query.value(name, text(bound));
            }
        }
        query
    }
}

/// The next text in order. The longest id has none that a key could hold, but no message has an id of that
/// length, as it would not fit in a topic.
fn successor(mut text: String) -> String {
    if text.len() < MESSAGE_ID_BYTES {
        text.push('\0');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(from: &str, to: &str, after: &str, order: Order) -> Option<Bounds> {
        let id = |text: &str| (!text.is_empty()).then(|| MessageId::new(text).unwrap());
        Bounds::of(&Range {
            from: id(from),
            to: id(to),
            order,
            after: id(after),
        })
    }

    #[test]
    fn bounds_follow_the_range_and_its_order() {
        use Order::{NewestFirst, OldestFirst};
        let some = |from: &str, to: &str, excluded: &str| {
            let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
            Some(Bounds {
                from: text(from),
                to: text(to),
                excluded: text(excluded),
            })
        };
        for (from, to, after, order, expected) in [
            ("", "", "", OldestFirst, some("", "", "")),
            ("b", "d", "", OldestFirst, some("b", "d", "")),
            ("b", "b", "", OldestFirst, some("b", "b", "")),
            ("d", "b", "", OldestFirst, None),
            ("", "", "c", OldestFirst, some("c\0", "", "")),
            ("b", "d", "c", OldestFirst, some("c\0", "d", "")),
            ("b", "d", "a", OldestFirst, some("b", "d", "")),
            ("b", "d", "d", OldestFirst, None),
            ("", "", "c", NewestFirst, some("", "c", "c")),
            ("b", "d", "c", NewestFirst, some("b", "c", "c")),
            ("b", "d", "e", NewestFirst, some("b", "d", "")),
            ("b", "d", "a", NewestFirst, None),
        ] {
            assert_eq!(
                bounds(from, to, after, order),
                expected,
                "{from} {to} {after} {order:?}"
            );
        }
        let long = "x".repeat(MESSAGE_ID_BYTES);
        let longest = bounds("", "", &long, OldestFirst).unwrap();
        assert_eq!(longest.from, Some(long));
    }
}
