//! Finding messages by their order, in the index that holds no tombstones.

use antumbra_service::inbox::{MESSAGE_ID_BYTES, MessageId, MessageIndex, Order, Range, Source};
use antumbra_service::store::StoreError;
use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;

use super::DynamoDbInbox;
use super::item::{SOURCE, UNDELETED_ID, string, text};
use crate::errors;
use crate::tables::UNDELETED;

/// Ids of one page.
const PAGE_IDS: usize = 1000;

impl MessageIndex for DynamoDbInbox {
    async fn ids(
        &self,
        source: &Source,
        range: &Range,
        limit: usize,
    ) -> Result<Vec<MessageId>, StoreError> {
        if !(1..=PAGE_IDS).contains(&limit) {
            return Err(StoreError::Invalid(format!(
                "a page holds 1 to {PAGE_IDS} messages, not {limit}"
            )));
        }
        let Some(bounds) = Bounds::of(range) else {
            return Ok(Vec::new());
        };
        let mut ids = Vec::new();
        let mut start = None;
        loop {
            let room = limit - ids.len() + usize::from(bounds.without.is_some());
            let call = self
                .client
                .query()
                .table_name(&self.table)
                .index_name(UNDELETED.name)
                .consistent_read(true)
                .scan_index_forward(range.order == Order::OldestFirst)
                .projection_expression("#id")
                .limit(i32::try_from(room).unwrap_or(i32::MAX))
                .set_exclusive_start_key(start);
            let found = bounds.of_source(source, call).send().await;
            let found = found.map_err(|error| errors::of_call("Query", &error, 0))?;
            for item in found.items() {
                let id = string(item, UNDELETED_ID)?;
                if bounds.without.as_deref() == Some(id) {
                    continue;
                }
                match MessageId::new(id) {
                    Ok(id) => ids.push(id),
                    // What others wrote must not hide all the rest.
                    Err(error) => tracing::warn!(%error, %source, "left out of a listing"),
                }
            }
            start = found.last_evaluated_key;
            if ids.len() >= limit || start.is_none() {
                ids.truncate(limit);
                return Ok(ids);
            }
        }
    }
}

/// Between which ids to look.
#[derive(Debug, PartialEq, Eq)]
struct Bounds {
    from: Option<String>,
    to: Option<String>,
    /// Within the bounds, and yet not wanted.
    without: Option<String>,
}

impl Bounds {
    /// `None` where nothing can lie between them, which DynamoDB would refuse to look for.
    fn of(range: &Range) -> Option<Bounds> {
        let plain = |id: &Option<MessageId>| id.as_ref().map(|id| id.as_str().to_owned());
        let (mut from, mut to, mut without) = (plain(&range.from), plain(&range.to), None);
        match (plain(&range.after), range.order) {
            (None, _) => {}
            (Some(after), Order::OldestFirst) => {
                let next = Some(successor(after));
                from = from.max(next);
            }
            (Some(after), Order::NewestFirst) => {
                if to.as_ref().is_none_or(|to| *to >= after) {
                    without = Some(after.clone());
                    to = Some(after);
                }
            }
        }
        let empty = from.iter().zip(&to).any(|(from, to)| from > to);
        (!empty).then_some(Bounds { from, to, without })
    }

    fn of_source(&self, source: &Source, call: QueryFluentBuilder) -> QueryFluentBuilder {
        let condition = match (&self.from, &self.to) {
            (None, None) => "#source = :source",
            (Some(_), None) => "#source = :source AND #id >= :from",
            (None, Some(_)) => "#source = :source AND #id <= :to",
            (Some(_), Some(_)) => "#source = :source AND #id BETWEEN :from AND :to",
        };
        let mut call = call
            .key_condition_expression(condition)
            .expression_attribute_names("#source", SOURCE)
            .expression_attribute_names("#id", UNDELETED_ID)
            .expression_attribute_values(":source", text(source.as_str()));
        for (name, bound) in [(":from", &self.from), (":to", &self.to)] {
            if let Some(bound) = bound {
                call = call.expression_attribute_values(name, text(bound));
            }
        }
        call
    }
}

/// The first text behind this one. The longest has none that a key could hold, but no message has an id
/// as long as that: it would not fit a topic.
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
    fn what_comes_after_is_within_the_bounds() {
        use Order::{NewestFirst, OldestFirst};
        let some = |from: &str, to: &str, without: &str| {
            let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
            Some(Bounds {
                from: text(from),
                to: text(to),
                without: text(without),
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
