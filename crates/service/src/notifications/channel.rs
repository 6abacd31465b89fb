//! Port for sending messages.

use async_trait::async_trait;

/// One message, ready to be sent. A channel uses what applies to it and leaves the rest.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Message {
    /// Stable id: the same on every attempt, so that receivers can drop duplicates.
    pub id: String,
    /// The key of the item that changed. Messages of one key are sent in order.
    pub key: String,
    /// JSON text.
    pub body: String,
    /// Message attributes (name and value), for subscription filters.
    pub attributes: Vec<(String, String)>,
    /// Standard queues: the message group for fair queues.
    pub tenant: Option<String>,
    /// Queues: initial visibility delay.
    pub delay_seconds: Option<u32>,
    /// Topics: the subject line.
    pub subject: Option<String>,
    /// MQTT: topic.
    pub topic: Option<String>,
    /// MQTT: 0 or 1.
    pub qos: u8,
    /// MQTT 5: correlation data of the request, in base64.
    pub correlation_data: Option<String>,
    /// Event buses: the detail type.
    pub detail_type: Option<String>,
}

impl Message {
    /// Returns the size that counts against the limits of a channel: the body, and the attributes with
    /// their names and types.
    pub fn bytes(&self) -> usize {
        let attributes = self.attributes.iter();
        let attributes = attributes.map(|(name, value)| attribute_bytes(name, value));
        self.body.len() + attributes.sum::<usize>()
    }
}

/// Returns the size of an attribute: its name, its type (always a string) and its value.
pub fn attribute_bytes(name: &str, value: &str) -> usize {
    name.len() + "String".len() + value.len()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChannelLimits {
    pub batch_count: usize,
    /// Bytes of all messages of one call, as [`Message::bytes`] counts them.
    pub batch_bytes: usize,
    pub message_bytes: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// Can be retried: throttled, timed out, or the service failed. The message may have been accepted.
    #[error("{0}")]
    Retry(String),
    /// Will never succeed: no such queue, access denied, too large, rejected content.
    #[error("{0}")]
    Permanent(String),
}

/// A queue, a topic, a broker or a bus.
///
/// Laws: `send` gets at most what [`Channel::limits`] allows, makes one call to the service, and returns one
/// result per message in the given order. A call that fails as a whole fails every message. It never retries
/// beyond what the service's client does, and never panics on a response of the service.
#[async_trait]
pub trait Channel: Send + Sync {
    fn limits(&self) -> ChannelLimits;

    /// The maximum number of calls in flight. Messages of one key are never in flight together.
    fn concurrent_calls(&self) -> usize {
        1
    }

    async fn send(&self, messages: &[Message]) -> Vec<Result<(), SendError>>;
}
