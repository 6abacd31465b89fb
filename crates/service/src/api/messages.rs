//! Messages of the inbox.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
#[cfg(feature = "openapi")]
use utoipa::ToSchema;

use super::Time;
use crate::inbox::{Contact, InboxMessage, MessageId, Source};

/// A page of messages of one source, ordered by message id.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct MessagePage {
    /// Source of the messages.
    pub uuid: String,
    /// The messages of this page.
    pub messages: Vec<MessageEntry>,
    /// The cursor of the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A message within a page. Listings without bodies carry the id only.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct MessageEntry {
    /// Message id, unique within the source.
    pub message_id: String,
    /// Time when the message was stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub received_at: Option<Time>,
    /// Time when the message expires, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
    /// Body of the message, its numbers as they were sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub body: Option<Box<RawValue>>,
}

impl From<&MessageId> for MessageEntry {
    fn from(id: &MessageId) -> MessageEntry {
        MessageEntry {
            message_id: id.as_str().to_owned(),
            received_at: None,
            expires_at: None,
            body: None,
        }
    }
}

impl From<&InboxMessage> for MessageEntry {
    fn from(message: &InboxMessage) -> MessageEntry {
        MessageEntry {
            received_at: Some(message.received_at.into()),
            expires_at: message.expires_at.map(Time::from),
            // A stored body is JSON.
            body: RawValue::from_string(message.body.as_json().to_owned()).ok(),
            ..MessageEntry::from(&message.id)
        }
    }
}

/// A message.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct Message {
    /// Source of the message.
    pub uuid: String,
    /// Id, times and body.
    #[serde(flatten)]
    pub entry: MessageEntry,
}

impl Message {
    pub fn new(source: &Source, message: &InboxMessage) -> Message {
        Message {
            uuid: source.as_str().to_owned(),
            entry: message.into(),
        }
    }
}

/// A message to send to a device.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct OutboundMessage {
    /// Any JSON; it is passed on as it is written.
    #[cfg_attr(feature = "openapi", schema(value_type = Value, example = json!({"led": "on"})))]
    pub message: Box<RawValue>,
}

/// A message that is in the outbound queue.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct SentMessage {
    /// The device.
    pub uuid: String,
    /// Key in the queue's message. It is the same if the request is sent again with its `Idempotency-Key`.
    pub idempotency_key: String,
}

/// A source of messages.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct MessageSource {
    /// The source.
    pub uuid: String,
    /// Start of the hour of its last message.
    pub last_contact: Time,
}

impl From<Contact> for MessageSource {
    fn from(contact: Contact) -> MessageSource {
        MessageSource {
            uuid: contact.source.as_str().to_owned(),
            last_contact: contact.last_contact.into(),
        }
    }
}

page! {
    /// A page of sources.
    SourcePage { sources: MessageSource } from Contact
}
