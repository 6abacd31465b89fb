//! Conversion between inbox messages and their items. The parent module lists the attributes.

use antumbra_service::inbox::{Body, InboxMessage, MessageId, Source};
use antumbra_service::store::StoreError;
use antumbra_shadow::Timestamp;
use antumbra_wire::items::ItemKind;
use serde::{Deserialize, Serialize};

use crate::document;
use crate::table::{Item, Key, Table};
use crate::tables::UNDELETED;
use crate::value::{corrupt, from_item, seconds};

pub(super) const UNDELETED_ID: &str = UNDELETED.sort_key.0;
const BODY: &str = "body";

/// All attributes of a message except its body, which is stored as a document.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    // The key attributes are only read here; `Table::item` writes them.
    #[serde(skip_serializing)]
    uuid: String,
    #[serde(skip_serializing)]
    message_id: String,
    undeleted_id: String,
    body_text: Option<String>,
    received_at: String,
    ttl: Option<i64>,
}

pub(super) fn key(source: &Source, id: &MessageId) -> Key {
    Key::new(ItemKind::InboxMessage, source.as_str(), id.as_str())
}

pub(super) fn encode(table: &Table, message: &InboxMessage) -> Result<Item, StoreError> {
    let metadata = Metadata {
        uuid: String::new(),
        message_id: String::new(),
        undeleted_id: message.id.as_str().to_owned(),
        body_text: message.body.written().map(str::to_owned),
        received_at: message.received_at.to_string(),
        ttl: message.expires_at.map(seconds),
    };
    let mut item = table.item(&key(&message.source, &message.id), &metadata)?;
    let body = document::encode(message.body.document());
    item.insert(BODY.to_owned(), body);
    Ok(item)
}

/// Decodes an item; `None` for a tombstone.
pub(super) fn decode(mut item: Item) -> Result<Option<InboxMessage>, StoreError> {
    if !item.contains_key(UNDELETED_ID) {
        return Ok(None);
    }
    let body = item.remove(BODY).ok_or_else(|| corrupt(BODY, "missing"))?;
    let body = document::decode(&body).map_err(|error| corrupt(BODY, error))?;
    let metadata: Metadata = from_item("message", item)?;
    let source = Source::new(metadata.uuid.as_str());
    let id = MessageId::new(metadata.message_id.as_str());
    let received_at = Timestamp::parse(&metadata.received_at);
    let expires_at_nanoseconds = metadata
        .ttl
        .map(|seconds| i128::from(seconds) * 1_000_000_000);
    Ok(Some(InboxMessage {
        source: source.map_err(|error| corrupt("uuid", error))?,
        id: id.map_err(|error| corrupt("messageId", error))?,
        body: Body::from_parts(body, metadata.body_text.as_deref()),
        received_at: received_at.ok_or_else(|| corrupt("receivedAt", "not a time"))?,
        expires_at: expires_at_nanoseconds.map(Timestamp::from_nanoseconds),
    }))
}
