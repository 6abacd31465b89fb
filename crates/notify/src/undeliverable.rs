//! Notifications that can never be sent: their form in the undeliverable queue.

use std::collections::BTreeMap;

use antumbra_service::notifications::Message;
use antumbra_wire::notification::NotificationId;
use antumbra_wire::stream::{Record, Undecodable};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A notification that waits in a queue, or a record that never became one.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct StoredNotification {
    pub reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registration: Option<String>,
    /// The key of the item that changed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub key: String,
    pub(crate) record: Position,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) notification: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<Envelope>,
    /// The id of the message in the spill queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) spill: Option<String>,
}

/// The position of a record, valid as long as the stream keeps the record.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Position {
    #[serde(skip_serializing_if = "String::is_empty")]
    stream: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    event_id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    sequence_number: String,
}

/// The properties of a message beside its body, needed to send it again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Envelope {
    pub(crate) id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) topic: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) attributes: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tenant: Option<String>,
    /// A delivery of the standard queue.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) unordered: bool,
}

impl StoredNotification {
    /// Parses a message of the undeliverable queue; `None` if another function sent it.
    pub fn parse(text: &str) -> Option<StoredNotification> {
        serde_json::from_str(text).ok()
    }

    /// Adds the message that its channel rejected.
    pub(crate) fn with_message(mut self, message: &Message) -> StoredNotification {
        self = self.with_body(&message.body);
        self.message = self.notification.is_some().then(|| Envelope {
            id: message.id.clone(),
            topic: message.topic.clone(),
            attributes: message.attributes.iter().cloned().collect(),
            tenant: message.tenant.clone(),
            unordered: false,
        });
        self
    }

    /// Adds the body of a notification. Bodies that the listener wrote are JSON.
    pub(crate) fn with_body(mut self, body: &str) -> StoredNotification {
        self.notification = serde_json::from_str(body).ok();
        self
    }

    /// The text of a message of at most `limit` bytes, without the notification if it would exceed them.
    pub(crate) fn text(&self, limit: usize) -> String {
        let text = |stored: &StoredNotification| serde_json::to_string(stored).unwrap_or_default();
        let whole = text(self);
        if whole.len() <= limit {
            return whole;
        }
        text(&StoredNotification {
            reason: self.reason.clone(),
            registration: self.registration.clone(),
            key: self.key.clone(),
            record: self.record.clone(),
            ..StoredNotification::default()
        })
    }
}

impl Position {
    pub(crate) fn sequence_number(sequence_number: &str) -> Position {
        Position {
            sequence_number: sequence_number.to_owned(),
            ..Position::default()
        }
    }
}

impl From<Record<'_>> for Position {
    fn from(record: Record<'_>) -> Position {
        Position {
            stream: record.source_arn().unwrap_or_default().into_owned(),
            event_id: record.event_id().into_owned(),
            sequence_number: record.sequence_number().into_owned(),
        }
    }
}

impl From<&Undecodable> for Position {
    fn from(record: &Undecodable) -> Position {
        Position {
            stream: String::new(),
            event_id: record.event_id.clone().unwrap_or_default(),
            sequence_number: record.sequence_number.clone().unwrap_or_default(),
        }
    }
}

pub(crate) struct Undeliverable {
    pub(crate) record: usize,
    /// Unique, and the same at every attempt: a FIFO queue drops a message with the id of another.
    id: String,
    stored: StoredNotification,
}

impl Undeliverable {
    /// `id` is the notification's; a record that never became one has an id that is derived from it.
    pub(crate) fn new(
        record: usize,
        id: Option<String>,
        stored: StoredNotification,
    ) -> Undeliverable {
        let derived = || {
            let Position {
                event_id,
                sequence_number,
                ..
            } = &stored.record;
            let mut known = [event_id, sequence_number, &stored.reason].into_iter();
            let known = known.find(|known| !known.is_empty());
            NotificationId::new(known.map_or("", |known| known), "", None).to_string()
        };
        Undeliverable {
            record,
            id: id.unwrap_or_else(derived),
            stored,
        }
    }

    /// The message to the undeliverable queue, without the notification if it would exceed the limit.
    pub(crate) fn message(&self, limit: usize) -> Message {
        Message {
            id: self.id.clone(),
            // Order does not matter here; a key per message fills batches.
            key: self.id.clone(),
            body: self.stored.text(limit),
            ..Message::default()
        }
    }
}
