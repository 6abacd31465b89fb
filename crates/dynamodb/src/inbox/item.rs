//! A message as an item, and back.

use std::collections::HashMap;

use antumbra_service::inbox::{Body, InboxMessage, MessageId, Source};
use antumbra_service::store::StoreError;
use antumbra_shadow::Timestamp;
use aws_sdk_dynamodb::types::AttributeValue;

use crate::document;
use crate::tables::{MESSAGES, UNDELETED};

/// The attributes of an item.
pub(super) type Item = HashMap<String, AttributeValue>;

pub(super) const SOURCE: &str = MESSAGES.partition_key;
pub(super) const MESSAGE_ID: &str = MESSAGES.sort_key;
pub(super) const UNDELETED_ID: &str = UNDELETED.sort_key.0;
pub(super) const BODY: &str = "body";
pub(super) const BODY_TEXT: &str = "bodyText";
pub(super) const RECEIVED_AT: &str = "receivedAt";
pub(super) const DELETED_AT: &str = "deletedAt";
pub(super) const TTL: &str = "ttl";

/// The key of a message.
pub(super) fn key(source: &Source, id: &MessageId) -> Item {
    Item::from([
        (SOURCE.to_owned(), text(source.as_str())),
        (MESSAGE_ID.to_owned(), text(id.as_str())),
    ])
}

/// The item of a message.
pub(super) fn encode(message: &InboxMessage) -> Item {
    let mut item = key(&message.source, &message.id);
    let mut put = |name: &str, value| item.insert(name.to_owned(), value);
    put(UNDELETED_ID, text(message.id.as_str()));
    put(BODY, document::encode(message.body.document()));
    if let Some(written) = message.body.written() {
        put(BODY_TEXT, text(written));
    }
    put(RECEIVED_AT, text(&message.received_at.to_string()));
    if let Some(expires_at) = message.expires_at {
        put(TTL, epoch_seconds(expires_at));
    }
    item
}

/// Reads an item; `None` for a tombstone. One that others wrote otherwise than we do is an error of the
/// store, not of who asked.
pub(super) fn decode(item: &Item) -> Result<Option<InboxMessage>, StoreError> {
    if !item.contains_key(UNDELETED_ID) {
        return Ok(None);
    }
    let body = item.get(BODY).ok_or_else(|| unreadable(BODY, "missing"))?;
    let body = document::decode(body).map_err(|error| unreadable(BODY, error))?;
    let written = match item.get(BODY_TEXT) {
        None => None,
        Some(_) => Some(string(item, BODY_TEXT)?),
    };
    let source = Source::new(string(item, SOURCE)?).map_err(|error| unreadable(SOURCE, error))?;
    let id =
        MessageId::new(string(item, MESSAGE_ID)?).map_err(|error| unreadable(MESSAGE_ID, error))?;
    let expires_at = match item.get(TTL) {
        None => None,
        Some(AttributeValue::N(seconds)) => seconds.parse().ok().map(from_epoch_seconds),
        Some(_) => return Err(unreadable(TTL, "not a number")),
    };
    Ok(Some(InboxMessage {
        source,
        id,
        body: Body::from_parts(body, written),
        received_at: time(item, RECEIVED_AT)?,
        expires_at,
    }))
}

/// A string attribute.
pub(super) fn string<'a>(item: &'a Item, name: &str) -> Result<&'a str, StoreError> {
    let value = item.get(name).and_then(|value| value.as_s().ok());
    value
        .map(String::as_str)
        .ok_or_else(|| unreadable(name, "not a string"))
}

/// A time that is written as people write it.
pub(super) fn time(item: &Item, name: &str) -> Result<Timestamp, StoreError> {
    Timestamp::parse(string(item, name)?).ok_or_else(|| unreadable(name, "not a time"))
}

pub(super) fn text(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

const SECOND_NANOSECONDS: i128 = 1_000_000_000;

/// As the table's time to live wants it.
pub(super) fn epoch_seconds(at: Timestamp) -> AttributeValue {
    let seconds = at.nanoseconds().div_euclid(SECOND_NANOSECONDS);
    AttributeValue::N(seconds.to_string())
}

fn from_epoch_seconds(seconds: i64) -> Timestamp {
    Timestamp::from_nanoseconds(i128::from(seconds) * SECOND_NANOSECONDS)
}

fn unreadable(attribute: &str, reason: impl std::fmt::Display) -> StoreError {
    StoreError::Unavailable(format!("a stored item's {attribute} is {reason}"))
}
