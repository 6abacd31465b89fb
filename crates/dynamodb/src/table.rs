//! One DynamoDB table: the only user of the SDK's client.
//!
//! Expressions name attributes by placeholders: `#version` stands for the attribute `version`, as many
//! names are reserved words. The placeholders of a call are derived from its expressions.

mod ordered;
mod query;
mod read;
mod write;

use std::collections::HashMap;

use antumbra_service::store::StoreError;
use antumbra_wire::items::ItemKind;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue;
use serde::Serialize;

pub(crate) use ordered::{KeySpan, OrderedListing, outside};
pub(crate) use query::{Query, another_listing};
pub(crate) use read::{BatchRead, Found, SnapshotError};
pub(crate) use write::{ABSENT, EXISTS, Outcome, Refusal, Write};

use crate::tables;
use crate::value::{text, to_item};

pub(crate) type Item = HashMap<String, AttributeValue>;

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) partition: String,
    pub(crate) sort: String,
}

impl Key {
    /// Key of an item of this kind, with the ids of its partition key and its sort key.
    pub(crate) fn new(kind: ItemKind, owner: &str, id: &str) -> Key {
        Key {
            partition: kind.partition(owner),
            sort: kind.sort(id),
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Table {
    client: Client,
    name: String,
    schema: tables::TableDefinition<'static>,
}

impl Table {
    /// The table of this name or ARN with the keys of a schema.
    pub(crate) fn new(
        client: Client,
        name: impl Into<String>,
        schema: tables::TableDefinition<'static>,
    ) -> Table {
        Table {
            client,
            name: name.into(),
            schema,
        }
    }

    /// A main table that no test calls.
    #[cfg(test)]
    pub(crate) fn for_tests() -> Table {
        let config = aws_sdk_dynamodb::Config::builder()
            .behavior_version(aws_sdk_dynamodb::config::BehaviorVersion::latest())
            .build();
        Table::new(Client::from_conf(config), tables::MAIN.name, tables::MAIN)
    }

    pub(crate) fn attributes(&self, key: &Key) -> Item {
        Item::from([
            (self.schema.partition_key.to_owned(), text(&key.partition)),
            (self.schema.sort_key.to_owned(), text(&key.sort)),
        ])
    }

    /// A derived item at a key.
    pub(crate) fn item<T: Serialize>(&self, key: &Key, value: &T) -> Result<Item, StoreError> {
        let mut item = to_item(value)?;
        item.extend(self.attributes(key));
        Ok(item)
    }

    pub(crate) fn key(&self, item: &Item) -> Option<Key> {
        let text = |name| item.get(name)?.as_s().ok().cloned();
        Some(Key {
            partition: text(self.schema.partition_key)?,
            sort: text(self.schema.sort_key)?,
        })
    }
}

/// The placeholders `#name` in expressions and the attributes they stand for.
fn names<'a>(expressions: impl IntoIterator<Item = &'a str>) -> HashMap<String, String> {
    let mut found = HashMap::new();
    for expression in expressions {
        for part in expression.split('#').skip(1) {
            let end = part.find(|c: char| !c.is_ascii_alphanumeric());
            let name = &part[..end.unwrap_or(part.len())];
            found.insert(format!("#{name}"), name.to_owned());
        }
    }
    found
}

/// `None` for an empty map, which DynamoDB rejects.
fn non_empty<V>(map: HashMap<String, V>) -> Option<HashMap<String, V>> {
    Some(map).filter(|map| !map.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_found_once_each() {
        let found = names(["SET #a = #a + if_not_exists(#marks.#mark, :one)", "#a<:b"]);
        let mut found: Vec<&str> = found.values().map(String::as_str).collect();
        found.sort_unstable();
        assert_eq!(found, ["a", "mark", "marks"]);
    }
}
