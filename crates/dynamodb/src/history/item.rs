//! Items of the history table.

use std::time::Duration;

use antumbra_service::store::StoreError;
use antumbra_shadow::Timestamp;
use antumbra_wire::history::{Entry, HistoryKey, StoredBody, part_sort};
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;

use crate::table::{Item, Key, Table};
use crate::value::{corrupt, number, optional_number, read_text, seconds, text};

const OPERATION: &str = "operation";
const PREVIOUS_TIME: &str = "previousTime";
const CLIENT_TOKEN: &str = "clientToken";
/// Diffs and documents as JSON text, or compressed.
const BODY: &str = "body";
/// Number of parts beside the entry.
const PARTS: &str = "parts";
const TTL: &str = "ttl";

/// The items of an entry: its further parts, which are written first, and itself.
pub(super) struct EntryItems {
    pub(super) parts: Vec<Item>,
    pub(super) entry: Item,
    pub(super) bytes: usize,
}

pub(super) fn encode(table: &Table, entry: &Entry, kept: Duration) -> EntryItems {
    let key = Key {
        partition: entry.key.partition(),
        sort: entry.key.sort(),
    };
    let time = Timestamp::from_nanoseconds(entry.key.time.into());
    // The same for every attempt to write the entry.
    let ttl = number(seconds(time.after(kept)));
    let mut item = table.attributes(&key);
    let mut put = |name: &str, value| item.insert(name.to_owned(), value);
    put(OPERATION, text(entry.operation.as_str()));
    put(TTL, ttl.clone());
    if let Some(previous) = entry.previous_time {
        put(PREVIOUS_TIME, number(previous));
    }
    if let Some(token) = &entry.client_token {
        put(CLIENT_TOKEN, text(token));
    }
    let mut parts = Vec::new();
    let mut bytes = key.partition.len() + key.sort.len();
    match StoredBody::encode([&entry.reported, &entry.desired]) {
        None => {}
        Some(StoredBody::Text(json)) => {
            bytes += json.len();
            put(BODY, text(json));
        }
        Some(StoredBody::Compressed(stored)) => {
            let mut stored = stored.into_iter();
            let first = stored.next().unwrap_or_default();
            bytes += first.len();
            put(BODY, AttributeValue::B(Blob::new(first)));
            for (number, part) in stored.enumerate() {
                let key = Key {
                    partition: key.partition.clone(),
                    sort: part_sort(&key.sort, number + 1),
                };
                let mut item = table.attributes(&key);
                item.insert(BODY.to_owned(), AttributeValue::B(Blob::new(part)));
                item.insert(TTL.to_owned(), ttl.clone());
                parts.push(item);
            }
        }
    }
    if !parts.is_empty() {
        item.insert(PARTS.to_owned(), number(parts.len()));
    }
    EntryItems {
        parts,
        entry: item,
        bytes,
    }
}

pub(super) fn decode(
    partition: &str,
    sort: &str,
    item: Item,
    parts: Vec<Item>,
) -> Result<Entry, StoreError> {
    let key = HistoryKey::parse(partition, sort).map_err(|_| malformed())?;
    let operation = read_text(&item, OPERATION)?;
    let operation = operation
        .parse()
        .map_err(|_| corrupt(OPERATION, "unknown"))?;
    let body = match item.get(BODY) {
        None => None,
        Some(AttributeValue::S(json)) => Some(StoredBody::Text(json.clone())),
        Some(first) => {
            let all = std::iter::once(Some(first)).chain(parts.iter().map(|part| part.get(BODY)));
            let all = all.map(|part| match part {
                Some(AttributeValue::B(bytes)) => Ok(bytes.as_ref().to_vec()),
                _ => Err(corrupt(BODY, "neither text nor binary")),
            });
            Some(StoredBody::Compressed(all.collect::<Result<_, _>>()?))
        }
    };
    let [reported, desired] = match body {
        None => [None, None],
        Some(body) => body.decode().map_err(|error| corrupt(BODY, error))?,
    };
    let token = item.get(CLIENT_TOKEN).and_then(|token| token.as_s().ok());
    Ok(Entry {
        key,
        operation,
        previous_time: optional_number(&item, PREVIOUS_TIME)?,
        client_token: token.cloned(),
        reported,
        desired,
    })
}

/// Decodes an entry without its further parts: one that has some has no documents.
pub(super) fn decode_alone(
    partition: &str,
    sort: &str,
    mut item: Item,
) -> Result<Entry, StoreError> {
    if more_parts(&item) > 0 {
        item.remove(BODY);
    }
    decode(partition, sort, item, Vec::new())
}

/// Number of parts of an entry beside itself.
pub(super) fn more_parts(item: &Item) -> usize {
    optional_number(item, PARTS).ok().flatten().unwrap_or(0)
}

/// Returns whether an item has expired, which DynamoDB may delete only days later.
pub(super) fn has_expired(item: &Item, now: Timestamp) -> bool {
    let ttl: Option<i64> = optional_number(item, TTL).ok().flatten();
    ttl.is_some_and(|ttl| ttl <= seconds(now))
}

pub(super) fn malformed() -> StoreError {
    StoreError::Unavailable("a stored history entry is malformed".to_owned())
}
