//! A published message, and its conversion to the broker's types.

use std::{num::NonZeroU32, time::Duration};

use bytes::Bytes;
use rmqtt::{
    codec::{
        types::{Publish as Packet, QoS},
        v5::PublishProperties,
    },
    types::{From as Sender, Publish},
};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    pub topic: String,
    pub payload: Bytes,
    /// QoS 1 rather than 0.
    pub at_least_once: bool,
    /// Retained for later subscribers.
    pub retain: bool,
    /// Client id of the publishing device; `None` for the stack itself.
    pub client_id: Option<String>,
    pub properties: Properties,
}

/// Properties of MQTT 5. A client of version 3.1.1 neither sends nor receives them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Properties {
    pub response_topic: Option<String>,
    /// Data that the response repeats.
    pub correlation_data: Option<Bytes>,
    pub content_type: Option<String>,
    /// The payload is marked as UTF-8 text.
    pub utf8: bool,
    pub expiry_seconds: Option<NonZeroU32>,
    pub user: Vec<(String, String)>,
}

impl Message {
    /// A message of QoS 0 that is not retained.
    pub fn new(topic: impl Into<String>, payload: impl Into<Bytes>) -> Self {
        Self {
            topic: topic.into(),
            payload: payload.into(),
            ..Self::default()
        }
    }

    pub(super) fn received(sender: &Sender, publish: &Publish) -> Self {
        Self {
            topic: publish.topic.to_string(),
            payload: publish.payload.clone(),
            at_least_once: publish.qos != QoS::AtMostOnce,
            retain: publish.retain,
            client_id: Some(sender.id.client_id.to_string()),
            properties: publish
                .properties
                .as_ref()
                .map(Into::into)
                .unwrap_or_default(),
        }
    }
}

impl Properties {
    pub(super) fn expiry(&self) -> Option<Duration> {
        self.expiry_seconds
            .map(|s| Duration::from_secs(s.get().into()))
    }
}

impl From<&PublishProperties> for Properties {
    fn from(from: &PublishProperties) -> Self {
        Self {
            response_topic: from.response_topic.as_ref().map(ToString::to_string),
            correlation_data: from.correlation_data.clone(),
            content_type: from.content_type.as_ref().map(ToString::to_string),
            utf8: from.is_utf8_payload,
            expiry_seconds: from.message_expiry_interval,
            user: from
                .user_properties
                .iter()
                .map(|(name, value)| (name.to_string(), value.to_string()))
                .collect(),
        }
    }
}

impl From<Message> for Publish {
    fn from(message: Message) -> Self {
        let of = message.properties;
        let properties = PublishProperties {
            response_topic: of.response_topic.map(Into::into),
            correlation_data: of.correlation_data,
            content_type: of.content_type.map(Into::into),
            is_utf8_payload: of.utf8,
            message_expiry_interval: of.expiry_seconds,
            user_properties: of
                .user
                .into_iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
            ..PublishProperties::default()
        };
        let qos = if message.at_least_once {
            QoS::AtLeastOnce
        } else {
            QoS::AtMostOnce
        };
        let packet = Packet {
            dup: false,
            retain: message.retain,
            qos,
            topic: message.topic.into(),
            packet_id: None,
            payload: message.payload,
            properties: Some(properties),
        };
        Publish::new(Box::new(packet), None, None, None)
    }
}
