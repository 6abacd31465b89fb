//! Notifications that can never be sent: their form in the undeliverable queue.

use std::borrow::Cow;
use std::collections::BTreeMap;

use antumbra_service::notifications::{ChannelMessage, Message};
use antumbra_wire::notification::NotificationId;
use antumbra_wire::stream::{Record, Undecodable};
use serde::Serialize;
use serde_json::value::RawValue;

#[derive(Debug, Clone)]
pub(crate) struct Undeliverable {
    pub(crate) record: usize,
    /// Unique, and the same at every attempt: a FIFO queue drops a message with the id of another.
    id: String,
    body: String,
    /// The body without the notification, for when it is too large.
    short: String,
}

#[derive(Default)]
pub(crate) struct Failure<'a> {
    pub(crate) record: usize,
    pub(crate) position: Position<'a>,
    /// The notification's id; by default one that is derived from the record.
    pub(crate) id: Option<String>,
    pub(crate) key: &'a str,
    pub(crate) registration: Option<&'a str>,
    pub(crate) reason: &'a str,
    /// The notification's body, if it could be made.
    pub(crate) notification: Option<&'a str>,
    pub(crate) message: Option<&'a Message>,
}

/// The position of a record, valid as long as the stream keeps the record.
#[derive(Debug, Clone, Serialize, Default)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Position<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    stream: Cow<'a, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    event_id: Cow<'a, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    sequence_number: Cow<'a, str>,
}

impl<'a> Position<'a> {
    pub(crate) fn sequence_number(sequence_number: &'a str) -> Position<'a> {
        Position {
            sequence_number: sequence_number.into(),
            ..Position::default()
        }
    }
}

impl<'a> From<Record<'a>> for Position<'a> {
    fn from(record: Record<'a>) -> Position<'a> {
        Position {
            stream: record.source_arn().unwrap_or_default(),
            event_id: record.event_id(),
            sequence_number: record.sequence_number(),
        }
    }
}

impl<'a> From<&'a Undecodable> for Position<'a> {
    fn from(record: &'a Undecodable) -> Position<'a> {
        Position {
            stream: Cow::default(),
            event_id: record.event_id.as_deref().unwrap_or_default().into(),
            sequence_number: record.sequence_number.as_deref().unwrap_or_default().into(),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    registration: Option<&'a str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    key: &'a str,
    record: &'a Position<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    notification: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Envelope<'a>>,
}

/// The properties of a message beside its body, needed to send it again.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<'a> {
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    topic: Option<&'a str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    attributes: BTreeMap<&'a str, &'a str>,
}

impl<'a> From<&'a Message> for Envelope<'a> {
    fn from(message: &'a Message) -> Envelope<'a> {
        let attributes = message.attributes.iter();
        Envelope {
            id: &message.id,
            topic: message.topic.as_deref(),
            attributes: attributes.map(|(n, v)| (n.as_str(), v.as_str())).collect(),
        }
    }
}

impl Undeliverable {
    pub(crate) fn new(failure: Failure<'_>) -> Undeliverable {
        // Bodies that the listener wrote are JSON.
        let notification = failure
            .notification
            .and_then(|text| serde_json::from_str::<&RawValue>(text).ok());
        let message = failure.message.filter(|_| notification.is_some());
        let mut body = Body {
            reason: failure.reason,
            registration: failure.registration,
            key: failure.key,
            record: &failure.position,
            notification,
            message: message.map(Envelope::from),
        };
        let text = |body: &Body<'_>| serde_json::to_string(body).unwrap_or_default();
        let long = text(&body);
        (body.notification, body.message) = (None, None);
        let short = text(&body);
        let Position {
            event_id,
            sequence_number,
            ..
        } = &failure.position;
        let derived = || {
            let known = [event_id, sequence_number]
                .into_iter()
                .find(|known| !known.is_empty());
            let known = known.map_or(failure.reason, |known| known.as_ref());
            NotificationId::new(known, "", None).to_string()
        };
        Undeliverable {
            record: failure.record,
            id: failure.id.unwrap_or_else(derived),
            body: long,
            short,
        }
    }

    /// The message to the undeliverable queue, without the notification if it would exceed the limit.
    pub(crate) fn message(&self, limit: usize) -> ChannelMessage {
        let fits = self.body.len() <= limit;
        let message = Message {
            id: self.id.clone(),
            // Order does not matter here; a key per message fills batches.
            key: self.id.clone(),
            body: if fits { &self.body } else { &self.short }.clone(),
            ..Message::default()
        };
        ChannelMessage {
            channel: 0,
            message,
        }
    }
}
