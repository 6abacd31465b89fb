//! Listings: a query for one device, a scan for all. Documents stay where they are.

use antumbra_service::paging::{open_cursor, seal_cursor};
use antumbra_service::shadows::adapter::check_list;
use antumbra_service::shadows::{Cursor, DocumentSummary, Layout, ListQuery, Page, StoreError};
use aws_sdk_dynamodb::types::AttributeValue;

use super::DynamoDbShadows;
use super::item::{CLIENT_TOKEN, DELETED_AT, Item, TIMESTAMP, VERSION, stamp};
use super::keys::{Key, Kind, PARTITION_KEY, PARTITION_PREFIX, SORT_KEY, partition};
use crate::errors;

/// Items one call looks at, at most.
const CALL_ITEMS: usize = 1000;
/// How much more the next call looks at where most of what lies there is not a shadow's.
const GROWTH: usize = 4;
/// Calls for one page. A page that is not full by then is given as it is, with where to go on.
const PAGE_CALLS: u32 = 8;
/// Tells these cursors from those of other stores.
const KIND: &str = "dynamodb";
/// `timestamp` is a reserved word, and others may become so.
const PROJECTION: &str = "#pk, #sk, #version, #timestamp, #token";
const NAMES: [(&str, &str); 6] = [
    ("#pk", PARTITION_KEY),
    ("#sk", SORT_KEY),
    ("#version", VERSION),
    ("#timestamp", TIMESTAMP),
    ("#token", CLIENT_TOKEN),
    ("#deleted", DELETED_AT),
];

/// What one call brought.
struct Looked {
    items: Vec<Item>,
    /// Where the next call starts.
    last: Option<Item>,
}

impl DynamoDbShadows {
    pub(super) async fn list_page(
        &self,
        query: &ListQuery,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<DocumentSummary>, StoreError> {
        check_list(query, limit)?;
        let mut start = cursor.map(|cursor| self.open(cursor, query)).transpose()?;
        let per_item = match self.config.layout {
            Layout::Separate => 1,
            Layout::Combined => 2,
        };
        let room = (limit / per_item).max(1);
        let mut look_at = room;
        let mut documents = Vec::new();
        let mut taken = 0;
        for _ in 0..PAGE_CALLS {
            let looked = self.look(query, look_at, start.take()).await?;
            let mut items = looked.items.into_iter();
            let mut last_taken = None;
            while taken < room
                && let Some(item) = items.next()
            {
                if let Some((key, listed)) = Self::listed(&item) {
                    documents.extend(listed);
                    taken += 1;
                    last_taken = Some(key);
                }
            }
            start = match items.next() {
                Some(_) => last_taken,
                None => looked.last.as_ref().and_then(Key::of),
            };
            if start.is_none() || taken == room {
                break;
            }
            look_at = (look_at * GROWTH).min(CALL_ITEMS);
        }
        Ok(Page {
            rows: documents,
            next: start.map(|key| self.seal(&key, query)),
        })
    }

    async fn look(
        &self,
        query: &ListQuery,
        look_at: usize,
        start: Option<Key>,
    ) -> Result<Looked, StoreError> {
        let names = NAMES.map(|(name, attribute)| (name.to_owned(), attribute.to_owned()));
        let start = start.map(|key| key.attributes());
        let limit = i32::try_from(look_at).unwrap_or(i32::MAX);
        let (from, to) = self.sort_keys();
        match query {
            ListQuery::Of(id) => {
                let output = self
                    .client
                    .query()
                    .table_name(&self.config.table)
                    .key_condition_expression("#pk = :pk AND #sk BETWEEN :from AND :to")
                    .expression_attribute_values(":pk", AttributeValue::S(partition(id)))
                    .expression_attribute_values(":from", from)
                    .expression_attribute_values(":to", to)
                    .filter_expression("attribute_not_exists(#deleted)")
                    .projection_expression(PROJECTION)
                    .set_expression_attribute_names(Some(names.into()))
                    .set_exclusive_start_key(start)
                    .limit(limit)
                    .send()
                    .await
                    .map_err(|error| errors::of_call("Query", &error, 0))?;
                Ok(Looked {
                    items: output.items.unwrap_or_default(),
                    last: output.last_evaluated_key,
                })
            }
            ListQuery::All => {
                let prefix = AttributeValue::S(PARTITION_PREFIX.to_owned());
                let output = self
                    .client
                    .scan()
                    .table_name(&self.config.table)
                    .filter_expression(
                        "begins_with(#pk, :pk) AND #sk BETWEEN :from AND :to \
                         AND attribute_not_exists(#deleted)",
                    )
                    .expression_attribute_values(":pk", prefix)
                    .expression_attribute_values(":from", from)
                    .expression_attribute_values(":to", to)
                    .projection_expression(PROJECTION)
                    .set_expression_attribute_names(Some(names.into()))
                    .set_exclusive_start_key(start)
                    .limit(limit)
                    .send()
                    .await
                    .map_err(|error| errors::of_call("Scan", &error, 0))?;
                Ok(Looked {
                    items: output.items.unwrap_or_default(),
                    last: output.last_evaluated_key,
                })
            }
        }
    }

    /// Between which sort keys this layout's items lie, and none of the other's. Other things may lie there
    /// too.
    fn sort_keys(&self) -> (AttributeValue, AttributeValue) {
        let (first, last) = match self.config.layout {
            Layout::Separate => (Kind::Desired, Kind::Reported),
            Layout::Combined => (Kind::Combined, Kind::Combined),
        };
        // The prefixes end with `#`, and `$` follows it.
        let behind = last.prefix().replace('#', "$");
        let from = AttributeValue::S(first.prefix().to_owned());
        (from, AttributeValue::S(behind))
    }

    /// The documents an item holds; `None` for what is no shadow's.
    fn listed(item: &Item) -> Option<(Key, Vec<DocumentSummary>)> {
        let key = Key::of(item)?;
        let (shadow, kind) = key.shadow()?;
        // What others wrote under our keys must not hide all the rest.
        let stamp = stamp(item)
            .inspect_err(|error| tracing::warn!(%error, %shadow, "left out of a listing"))
            .ok()?;
        let listed = kind.states().iter().map(|state| DocumentSummary {
            shadow: shadow.clone(),
            state: *state,
            version: stamp.version,
            timestamp: stamp.timestamp,
            client_token: stamp.client_token.clone(),
        });
        Some((key, listed.collect()))
    }

    /// What a listing is of, as it stands in a cursor.
    fn subject<'a>(&'a self, query: &'a ListQuery) -> [&'a str; 4] {
        let layout = match self.config.layout {
            Layout::Separate => "separate",
            Layout::Combined => "combined",
        };
        let (kind, of) = match query {
            ListQuery::Of(id) => ("of", id.as_str()),
            ListQuery::All => ("all", ""),
        };
        [&self.config.table, layout, kind, of]
    }

    fn seal(&self, key: &Key, query: &ListQuery) -> Cursor {
        let [table, layout, kind, of] = self.subject(query);
        seal_cursor(&[KIND, table, layout, kind, of, &key.partition, &key.sort])
    }

    fn open(&self, cursor: &Cursor, query: &ListQuery) -> Result<Key, StoreError> {
        let parts = open_cursor(cursor)?;
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        match parts[..] {
            [KIND, table, layout, kind, of, key_partition, sort]
                if [table, layout, kind, of] == self.subject(query) =>
            {
                Ok(Key {
                    partition: key_partition.to_owned(),
                    sort: sort.to_owned(),
                })
            }
            _ => Err(StoreError::Invalid(
                "the cursor belongs to another listing".to_owned(),
            )),
        }
    }
}
