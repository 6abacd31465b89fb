//! What can never be sent: kept in the undeliverable queue, with the reason and where it came from.

use std::collections::BTreeMap;

use antumbra_service::notifications::{ChannelMessage, Message};
use antumbra_wire::notification::NotificationId;
use antumbra_wire::stream::{Record, Undecodable};
use serde::Serialize;
use serde_json::value::RawValue;

/// Something that can never be sent.
#[derive(Debug, Clone)]
pub(crate) struct Undeliverable {
    /// The position of the record it came from.
    pub(crate) record: usize,
    /// The same however often it is parked, and no other's: a FIFO queue drops what has the id of
    /// something else.
    id: String,
    body: String,
    /// The same without the notification, for when it does not fit.
    short: String,
}

/// The message in the undeliverable queue.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    registration: Option<&'a str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    key: &'a str,
    record: Position<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    notification: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Wrapping<'a>>,
}

/// What was around a notification when it was refused, so that it can be sent again as it was.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Wrapping<'a> {
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    topic: Option<&'a str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    attributes: BTreeMap<&'a str, &'a str>,
}

impl<'a> Wrapping<'a> {
    fn of(message: &'a Message) -> Wrapping<'a> {
        let attributes = message.attributes.iter();
        Wrapping {
            id: &message.id,
            topic: message.topic.as_deref(),
            attributes: attributes.map(|(n, v)| (n.as_str(), v.as_str())).collect(),
        }
    }
}

/// Where the record stands, for as long as the stream keeps it.
#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
struct Position<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    stream: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    event_id: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    sequence_number: &'a str,
}

impl Undeliverable {
    /// A notification that does not fit or that its channel refused.
    pub(crate) fn notification(
        record: Record<'_>,
        id: NotificationId,
        key: &str,
        registration: &str,
        reason: String,
        notification: Option<&str>,
    ) -> Undeliverable {
        let (stream, event_id, sequence) = (
            record.source_arn().unwrap_or_default(),
            record.event_id(),
            record.sequence_number(),
        );
        let position = Position {
            stream: &stream,
            event_id: &event_id,
            sequence_number: &sequence,
        };
        Undeliverable::new(
            record.index(),
            id.to_string(),
            key,
            Some(registration),
            &reason,
            position,
            (notification, None),
        )
    }

    /// A record that says too little.
    pub(crate) fn record(record: Record<'_>, key: &str, reason: String) -> Undeliverable {
        let (stream, event_id, sequence) = (
            record.source_arn().unwrap_or_default(),
            record.event_id(),
            record.sequence_number(),
        );
        let position = Position {
            stream: &stream,
            event_id: &event_id,
            sequence_number: &sequence,
        };
        let id = id_of_record(&event_id);
        Undeliverable::new(
            record.index(),
            id,
            key,
            None,
            &reason,
            position,
            (None, None),
        )
    }

    /// A record that cannot be decoded.
    pub(crate) fn undecodable(undecodable: Undecodable) -> Undeliverable {
        let position = Position {
            event_id: undecodable.event_id.as_deref().unwrap_or_default(),
            sequence_number: undecodable.sequence_number.as_deref().unwrap_or_default(),
            ..Position::default()
        };
        let reason = format!("the record cannot be decoded: {}", undecodable.fault);
        let known = undecodable
            .event_id
            .as_deref()
            .or(undecodable.sequence_number.as_deref());
        let id = id_of_record(known.unwrap_or(&reason));
        Undeliverable::new(
            undecodable.index,
            id,
            "",
            None,
            &reason,
            position,
            (None, None),
        )
    }

    /// A message that its channel refused for good.
    pub(crate) fn refused(
        record: usize,
        sequence_number: &str,
        registration: &str,
        message: &Message,
        reason: &str,
    ) -> Undeliverable {
        let position = Position {
            sequence_number,
            ..Position::default()
        };
        Undeliverable::new(
            record,
            message.id.clone(),
            &message.key,
            Some(registration),
            reason,
            position,
            (Some(&message.body), Some(message)),
        )
    }

    fn new(
        record: usize,
        id: String,
        key: &str,
        registration: Option<&str>,
        reason: &str,
        position: Position<'_>,
        (notification, message): (Option<&str>, Option<&Message>),
    ) -> Undeliverable {
        // What we wrote ourselves is JSON.
        let notification =
            notification.and_then(|text| serde_json::from_str::<&RawValue>(text).ok());
        let mut body = Body {
            reason,
            registration,
            key,
            record: position,
            message: message.filter(|_| notification.is_some()).map(Wrapping::of),
            notification,
        };
        let text = |body: &Body<'_>| serde_json::to_string(body).unwrap_or_default();
        let long = text(&body);
        (body.notification, body.message) = (None, None);
        Undeliverable {
            record,
            id,
            body: long,
            short: text(&body),
        }
    }

    /// As a message for the undeliverable queue, which is the only channel there.
    pub(crate) fn outgoing(&self, limit: usize) -> ChannelMessage {
        let body = if self.body.len() <= limit {
            &self.body
        } else {
            &self.short
        };
        let message = Message {
            id: self.id.clone(),
            // Order does not matter here; one key each lets batches be full.
            key: self.id.clone(),
            body: body.clone(),
            ..Message::default()
        };
        ChannelMessage {
            channel: 0,
            message,
        }
    }
}

/// The id of a record that is parked as such.
fn id_of_record(known: &str) -> String {
    NotificationId::new(known, "", None).to_string()
}
