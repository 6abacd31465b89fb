//! The messages of one event, ready to be sent.
//!
//! Their texts share one arena per event: a message has no allocation of its own until it is sent.

use std::ops::Range;

use antumbra_registration::{Change, RegistrationId, Registrations};
use antumbra_service::notifications::{Envelope, Message, attribute_bytes};
use antumbra_wire::notification::NotificationId;

use crate::routes::{apply_target_options, each_attribute};

pub(crate) type Text = Range<u32>;

/// Messages to send, in the order of their records.
#[derive(Default)]
pub(crate) struct DispatchList {
    entries: Vec<Entry>,
    /// Names and values of the attributes of all messages.
    attributes: Vec<(Text, Text)>,
    arena: String,
}

pub(crate) struct Entry {
    pub(crate) record: usize,
    pub(crate) registration: RegistrationId,
    pub(crate) channel: usize,
    pub(crate) content: Content,
    /// The message to the spill queue that is sent instead.
    pub(crate) spilled: Option<Box<Message>>,
}

pub(crate) enum Content {
    /// Texts in the arena, and the options of the registration's target.
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

    /// Sends a message to another channel, in another form.
    pub(crate) fn redirect(&mut self, index: usize, channel: usize, message: Message) {
        let entry = &mut self.entries[index];
        entry.channel = channel;
        entry.spilled = Some(Box::new(message));
    }

    /// Removes all messages.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }

    /// The ordering key of a message.
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

    /// The message to send.
    pub(crate) fn message(&self, index: usize, registrations: &Registrations) -> Message {
        match &self.entries[index].spilled {
            Some(message) => Message::clone(message),
            None => self.original(index, registrations),
        }
    }

    /// The message to the target.
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
            id: id.to_string(),
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
