//! Events of RabbitMQ queues on Amazon MQ.
//!
//! Messages are grouped by queue and base64-encoded. The broker records neither a time nor an id: both are
//! optional properties set by the publisher. So the time is only part of a message's identity, and never the
//! time of a signal.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::hash::Hasher;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use siphasher::sip128::{Hasher128, SipHasher24};

use crate::limits;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RabbitEventError {
    /// It is not JSON, or a message lacks a required field.
    #[error("not an event of Amazon MQ for RabbitMQ: {0}")]
    Shape(String),
    /// It has more messages than a batch can have.
    #[error("more than {limit} messages")]
    TooManyMessages { limit: usize },
    #[error("the event has {bytes} bytes, the limit is {limit}")]
    TooLong { bytes: usize, limit: usize },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RabbitMessage {
    /// The queue, as `name::virtual-host`.
    pub queue: String,
    /// Message id set by the publisher; otherwise a hash of queue, content and time, so that identical messages
    /// have the same id.
    pub id: String,
    /// The body, or its base64 if it is not text.
    pub body: Result<String, NotText>,
    /// The broker has delivered it before.
    pub redelivered: bool,
}

/// A body that is not text, in base64 as received.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not base64 of UTF-8 text")]
pub struct NotText(pub String);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event<'a> {
    #[serde(borrow)]
    rmq_messages_by_queue: BTreeMap<Cow<'a, str>, Vec<Message<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message<'a> {
    basic_properties: Option<Properties>,
    #[serde(default)]
    redelivered: bool,
    #[serde(borrow)]
    data: Cow<'a, str>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Properties {
    message_id: Option<String>,
    timestamp: Option<serde_json::Value>,
}

/// Checks cheaply whether an event comes from RabbitMQ.
pub fn is_event(event: &[u8]) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Glance {
        rmq_messages_by_queue: Option<serde::de::IgnoredAny>,
    }
    serde_json::from_slice::<Glance>(event).is_ok_and(|event| event.rmq_messages_by_queue.is_some())
}

/// Reads the messages of an event, queue by queue, in order.
pub fn read(event: &[u8]) -> Result<Vec<RabbitMessage>, RabbitEventError> {
    if event.len() > limits::EVENT_BYTES {
        return Err(RabbitEventError::TooLong {
            bytes: event.len(),
            limit: limits::EVENT_BYTES,
        });
    }
    let event: Event<'_> = serde_json::from_slice(event)
        .map_err(|error| RabbitEventError::Shape(error.to_string()))?;
    let queues = event.rmq_messages_by_queue.into_iter();
    let messages: Vec<RabbitMessage> = queues
        .flat_map(|(queue, messages)| {
            let of_queue = move |message| read_message(&queue, message);
            messages.into_iter().map(of_queue).collect::<Vec<_>>()
        })
        .collect();
    if messages.len() > limits::RECORDS {
        return Err(RabbitEventError::TooManyMessages {
            limit: limits::RECORDS,
        });
    }
    Ok(messages)
}

fn read_message(queue: &str, message: Message<'_>) -> RabbitMessage {
    let properties = message.basic_properties.unwrap_or_default();
    let id = properties.message_id.filter(|id| !id.is_empty());
    let id = id.unwrap_or_else(|| fingerprint(queue, &message.data, properties.timestamp.as_ref()));
    let bytes = STANDARD.decode(message.data.as_bytes()).ok();
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    RabbitMessage {
        queue: queue.to_owned(),
        id,
        body: text.ok_or_else(|| NotText(message.data.into_owned())),
        redelivered: message.redelivered,
    }
}

fn fingerprint(queue: &str, content: &str, timestamp: Option<&serde_json::Value>) -> String {
    let timestamp = timestamp.map(ToString::to_string).unwrap_or_default();
    let mut hash = SipHasher24::new();
    for part in [queue, content, &timestamp] {
        // Prefixed with the length, so that parts cannot run into each other.
        hash.write(&(part.len() as u64).to_be_bytes());
        hash.write(part.as_bytes());
    }
    format!("{:032x}", hash.finish128().as_u128())
}
