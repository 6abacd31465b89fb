//! Queries, and the cursors of their pages.

use antumbra_service::paging::{Cursor, Page, open_cursor, seal_cursor};
use antumbra_service::store::StoreError;
use aws_sdk_dynamodb::types::AttributeValue;

use super::{Item, Table, names, non_empty};
use crate::error::store_error;
use crate::tables::{Index, Scalar};
use crate::value::text;

/// Items that one call examines at most.
const CALL_ITEMS: usize = 1000;
/// Factor by which the next call examines more items, if few of them are selected.
const GROWTH: usize = 4;
/// Calls for one page. A page that is not full by then is returned as it is, with a cursor.
const PAGE_CALLS: u32 = 8;

/// One `Query` call.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query {
    pub(crate) index: Option<Index<'static>>,
    pub(crate) key_condition: String,
    pub(crate) filter: Option<String>,
    pub(crate) projection: Option<String>,
    pub(crate) values: Item,
    pub(crate) consistent: bool,
    pub(crate) descending: bool,
    /// Items that the call examines at most.
    pub(crate) limit: Option<usize>,
    /// Key after which the call starts.
    pub(crate) start: Option<Item>,
}

impl Query {
    pub(crate) fn new(key_condition: impl Into<String>) -> Query {
        Query {
            key_condition: key_condition.into(),
            ..Query::default()
        }
    }

    /// The items of a partition whose sort keys are between two texts, both inclusive.
    pub(crate) fn between(
        partition: impl Into<String>,
        from: impl Into<String>,
        to: impl Into<String>,
    ) -> Query {
        Query::new("#PK = :partition AND #SK BETWEEN :from AND :to")
            .value(":partition", text(partition))
            .value(":from", text(from))
            .value(":to", text(to))
    }

    /// The items of a partition whose sort keys start with a text.
    pub(crate) fn starting_with(partition: impl Into<String>, start: impl Into<String>) -> Query {
        Query::new("#PK = :partition AND begins_with(#SK, :start)")
            .value(":partition", text(partition))
            .value(":start", text(start))
    }

    pub(crate) fn index(self, index: Index<'static>) -> Query {
        let index = Some(index);
        Query { index, ..self }
    }

    pub(crate) fn consistent(self) -> Query {
        let consistent = true;
        Query { consistent, ..self }
    }

    pub(crate) fn limit(self, limit: usize) -> Query {
        let limit = Some(limit);
        Query { limit, ..self }
    }

    pub(crate) fn descending(self, descending: bool) -> Query {
        Query { descending, ..self }
    }

    pub(crate) fn filter(self, filter: impl Into<String>) -> Query {
        let filter = Some(filter.into());
        Query { filter, ..self }
    }

    /// Attributes to return; all of them if it is not set.
    pub(crate) fn projection(self, projection: &str) -> Query {
        let projection = Some(projection.to_owned());
        Query { projection, ..self }
    }

    /// Value of the placeholder `:name`.
    pub(crate) fn value(mut self, name: &str, value: AttributeValue) -> Query {
        self.values.insert(name.to_owned(), value);
        self
    }
}

pub(crate) struct Items {
    pub(crate) items: Vec<Item>,
    /// Key to continue after; `None` at the end.
    pub(crate) last: Option<Item>,
}

impl Table {
    pub(crate) async fn query(&self, query: Query) -> Result<Items, StoreError> {
        let limit = query.limit;
        let limit = limit.map(|limit| i32::try_from(limit).unwrap_or(i32::MAX));
        let optional = [&query.filter, &query.projection];
        let expressions =
            std::iter::once(&query.key_condition).chain(optional.into_iter().flatten());
        let names = non_empty(names(expressions.map(String::as_str)));
        let call = self.client.query().table_name(&self.name);
        let sent = call
            .set_index_name(query.index.map(|index| index.name.to_owned()))
            .key_condition_expression(query.key_condition)
            .set_filter_expression(query.filter)
            .set_projection_expression(query.projection)
            .set_expression_attribute_names(names)
            .set_expression_attribute_values(non_empty(query.values))
            .consistent_read(query.consistent)
            .scan_index_forward(!query.descending)
            .set_limit(limit)
            .set_exclusive_start_key(query.start)
            .send()
            .await;
        let output = sent.map_err(|error| store_error("Query", &error, 0))?;
        Ok(Items {
            items: output.items.unwrap_or_default(),
            last: output.last_evaluated_key.filter(|key| !key.is_empty()),
        })
    }

    /// Queries at most `count` items. It asks for one more, so that a page that ends with the last item has no next one.
    pub(crate) async fn query_up_to(
        &self,
        query: Query,
        count: usize,
    ) -> Result<Items, StoreError> {
        let (limit, keys) = (Some(count + 1), self.key_attributes(query.index));
        let mut found = self.query(Query { limit, ..query }).await?;
        if found.items.len() > count {
            found.items.truncate(count);
            let key = |item: &Item| -> Item {
                let keys = keys.iter();
                let attribute = |(name, _): &(&str, _)| item.get_key_value(*name);
                let key = keys.filter_map(attribute);
                key.map(|(name, value)| (name.clone(), value.clone()))
                    .collect()
            };
            found.last = found.items.last().map(key);
        }
        Ok(found)
    }

    pub(crate) async fn query_all(&self, mut query: Query) -> Result<Vec<Item>, StoreError> {
        let mut items = Vec::new();
        loop {
            let found = self.query(query.clone()).await?;
            items.extend(found.items);
            query.start = found.last;
            if query.start.is_none() {
                return Ok(items);
            }
        }
    }

    /// Returns one page of a listing, with the cursor of the next one. `listing` identifies the listing: a
    /// cursor of another one is rejected.
    pub(crate) async fn page(
        &self,
        listing: &[&str],
        mut query: Query,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<Item>, StoreError> {
        let index = query.index;
        query.start = self.open_cursor(listing, index, cursor)?;
        let found = self.query_up_to(query, limit).await?;
        Ok(Page {
            next: self.seal_cursor(listing, index, found.last.as_ref())?,
            rows: found.items,
        })
    }

    /// Returns one page of a listing of selected items. `select` makes rows of items and leaves out those that are not
    /// selected.
    pub(crate) async fn selected_page<R, F>(
        &self,
        listing: &[&str],
        mut query: Query,
        limit: usize,
        cursor: Option<&Cursor>,
        select: impl Fn(Vec<Item>) -> F,
    ) -> Result<Page<R>, StoreError>
    where
        F: Future<Output = Result<Vec<(Item, R)>, StoreError>>,
    {
        let index = query.index;
        query.start = self.open_cursor(listing, index, cursor)?;
        let mut rows = Vec::new();
        let mut examine = limit;
        for _ in 0..PAGE_CALLS {
            let found = self.query_up_to(query.clone(), examine).await?;
            query.start = found.last;
            let mut selected = select(found.items).await?;
            let room = limit - rows.len();
            if selected.len() > room {
                selected.truncate(room);
                query.start = selected.last().map(|(item, _)| item.clone());
            }
            rows.extend(selected.into_iter().map(|(_, row)| row));
            if query.start.is_none() || rows.len() == limit {
                break;
            }
            examine = (examine * GROWTH).min(CALL_ITEMS);
        }
        let next = self.seal_cursor(listing, index, query.start.as_ref())?;
        Ok(Page { rows, next })
    }

    /// The cursor of a listing that continues after an item of a table or an index, if there is one.
    pub(crate) fn seal_cursor(
        &self,
        listing: &[&str],
        index: Option<Index<'static>>,
        last: Option<&Item>,
    ) -> Result<Option<Cursor>, StoreError> {
        let Some(last) = last else {
            return Ok(None);
        };
        let mut parts = vec![self.name.as_str()];
        parts.extend(listing);
        for (name, _) in self.key_attributes(index) {
            let part = match last.get(name) {
                Some(AttributeValue::S(value) | AttributeValue::N(value)) => value,
                _ => {
                    let lost = format!("Query: the last key has no {name}");
                    return Err(StoreError::Unavailable(lost));
                }
            };
            parts.push(part);
        }
        Ok(Some(seal_cursor(&parts)))
    }

    /// The key that a cursor continues after.
    pub(crate) fn open_cursor(
        &self,
        listing: &[&str],
        index: Option<Index<'static>>,
        cursor: Option<&Cursor>,
    ) -> Result<Option<Item>, StoreError> {
        let Some(cursor) = cursor else {
            return Ok(None);
        };
        let parts = open_cursor(cursor)?;
        let attributes = self.key_attributes(index);
        let (found, keys) = parts
            .split_at_checked(1 + listing.len())
            .filter(|(_, keys)| keys.len() == attributes.len())
            .ok_or_else(another_listing)?;
        if found[0] != self.name || found[1..] != *listing {
            return Err(another_listing());
        }
        let mut start = Item::new();
        for ((name, scalar), value) in attributes.into_iter().zip(keys) {
            if value.is_empty() {
                return Err(another_listing());
            }
            let value = value.clone();
            let value = match scalar {
                Scalar::Text => AttributeValue::S(value),
                Scalar::Number => AttributeValue::N(value),
            };
            start.insert(name.to_owned(), value);
        }
        Ok(Some(start))
    }

    /// The attributes that locate an item in the table or in an index.
    fn key_attributes(&self, index: Option<Index<'static>>) -> Vec<(&'static str, Scalar)> {
        let own = [self.schema.partition_key, self.schema.sort_key];
        let mut attributes = own.map(|name| (name, Scalar::Text)).to_vec();
        if let Some(index) = index {
            for attribute in [(index.partition_key, Scalar::Text), index.sort_key] {
                if !attributes.contains(&attribute) {
                    attributes.push(attribute);
                }
            }
        }
        attributes
    }
}

/// The error of a cursor that another listing made.
pub(crate) fn another_listing() -> StoreError {
    StoreError::Invalid("the cursor belongs to another listing".to_owned())
}
