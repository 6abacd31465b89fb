//! The messages of one event. `plan` adds them, `spill` redirects those of suspended registrations, and the listener
//! sends them.
//!
//! Their texts share one arena per event: a message has no allocation of its own until it is sent.

use std::ops::Range;

use antumbra_registration::{Change, RegistrationId, Registrations};
use antumbra_service::notifications::{Envelope, Message, attribute_bytes};
use antumbra_wire::notification::NotificationId;

use crate::routes::{apply_target_options, each_attribute};

/// Byte range of a text in the arena.
pub(crate) type Text = Range<u32>;

/// Messages to send, in the order of their records.
#[derive(Default)]
pub(crate) struct DispatchList {
    entries: Vec<Entry>,
    /// Names and values of the attributes of all messages. Each message has a range of them.
    attributes: Vec<(Text, Text)>,
    arena: String,
}

pub(crate) struct Entry {
    /// Position of the record in the event.
    pub(crate) record: usize,
    pub(crate) registration: RegistrationId,
    pub(crate) channel: usize,
    pub(crate) content: Content,
    /// The message to the spill queue, if it is sent instead of the original.
    pub(crate) spilled: Option<Box<Message>>,
}

pub(crate) enum Content {
    /// A notification whose texts are in the arena. The options of its target are added when it is sent.
    Notification {
        id: NotificationId,
        key: Text,
        body: Text,
        topic: Option<Text>,
        attributes: Attributes,
    },
    /// A complete message, for deliveries to clients.
    Message(Box<Message>),
}

/// Range of the attributes in the list, and the size of these attributes in a message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attributes {
    start: u32,
    end: u32,
    pub(crate) bytes: usize,
}

impl DispatchList {
    pub(crate) fn push(&mut self, entry: Entry) {
        self.entries.push(entry);
    }

    pub(crate) fn store(&mut self, text: &str) -> Text {
        let start = self.arena.len() as u32;
        self.arena.push_str(text);
        start..self.arena.len() as u32
    }

    pub(crate) fn store_attributes(
        &mut self,
        registrations: &Registrations,
        registration: RegistrationId,
        change: &Change<'_>,
    ) -> Attributes {
        let start = self.attributes.len() as u32;
        let mut bytes = 0;
        each_attribute(&registrations[registration], change, |name, value| {
            bytes += attribute_bytes(name, value);
            let attribute = (self.store(name), self.store(value));
            self.attributes.push(attribute);
        });
        let end = self.attributes.len() as u32;
        Attributes { start, end, bytes }
    }

    pub(crate) fn text(&self, text: &Text) -> &str {
        &self.arena[text.start as usize..text.end as usize]
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn entry(&self, index: usize) -> &Entry {
        &self.entries[index]
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Replaces a message by one to the spill queue.
    pub(crate) fn redirect(&mut self, index: usize, channel: usize, message: Message) {
        let entry = &mut self.entries[index];
        entry.channel = channel;
        entry.spilled = Some(Box::new(message));
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }

    /// Returns the key within which messages are sent in order.
    pub(crate) fn key(&self, index: usize) -> &str {
        match &self.entries[index].content {
            Content::Message(message) => &message.key,
            Content::Notification { key, .. } => self.text(key),
        }
    }

    pub(crate) fn envelopes(&self) -> Vec<Envelope<'_>> {
        let mut envelopes = Vec::with_capacity(self.entries.len());
        for entry in &self.entries {
            let (key, bytes) = match (&entry.spilled, &entry.content) {
                (Some(message), _) | (None, Content::Message(message)) => {
                    (message.key.as_str(), message.bytes())
                }
                (
                    None,
                    Content::Notification {
                        key,
                        body,
                        attributes,
                        ..
                    },
                ) => (self.text(key), body.len() + attributes.bytes),
            };
            envelopes.push(Envelope {
                channel: entry.channel,
                key,
                bytes,
            });
        }
        envelopes
    }

    /// Returns the message to send: the one to the spill queue if there is one, otherwise the original.
    pub(crate) fn message(&self, index: usize, registrations: &Registrations) -> Message {
        match &self.entries[index].spilled {
            Some(message) => Message::clone(message),
            None => self.original(index, registrations),
        }
    }

    /// Returns the message to the target of its registration, also if it is spilled.
    pub(crate) fn original(&self, index: usize, registrations: &Registrations) -> Message {
        let entry = &self.entries[index];
        let (id, key, body, topic, attributes) = match &entry.content {
            Content::Message(message) => return Message::clone(message),
            Content::Notification {
                id,
                key,
                body,
                topic,
                attributes,
            } => (id, key, body, topic, attributes),
        };
        let text = |text: &Text| self.text(text).to_owned();
        let attributes = &self.attributes[attributes.start as usize..attributes.end as usize];
        let mut message = Message {
            id: id.digits(),
            key: text(key),
            body: text(body),
            attributes: attributes
                .iter()
                .map(|(name, value)| (text(name), text(value)))
                .collect(),
            topic: topic.as_ref().map(text),
            ..Message::default()
        };
        apply_target_options(&mut message, &registrations[entry.registration]);
        message
    }
}
