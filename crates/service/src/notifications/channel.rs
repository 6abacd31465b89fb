//! The port to wherever notifications go, and its laws.

use std::future::Future;
use std::pin::Pin;

/// A future that can be put in a collection with others.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// One message, ready to be sent. A channel uses what applies to it and leaves the rest.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Message {
    /// The notification's id: the same however often it is sent, so that duplicates can be told.
    pub id: String,
    /// The key of the item that changed. Messages of one key are sent in order.
    pub key: String,
    /// JSON text.
    pub body: String,
    /// What subscribers filter by without reading the body: name and text.
    pub attributes: Vec<(String, String)>,
    /// Queues without order: whose message it is, so that the queue can keep one from crowding out the
    /// others.
    pub tenant: Option<String>,
    /// Queues: how long the message stays hidden.
    pub delay_seconds: Option<u32>,
    /// Topics: the subject line.
    pub subject: Option<String>,
    /// MQTT: where it is published.
    pub topic: Option<String>,
    /// MQTT: 0 or 1.
    pub qos: u8,
    /// MQTT 5: what an answer repeats of its request, in base64.
    pub correlation_data: Option<String>,
    /// Event buses: the detail type.
    pub detail_type: Option<String>,
}

impl Message {
    /// What the message counts against a channel's byte limits: the body, and the attributes with
    /// their names and types.
    pub fn bytes(&self) -> usize {
        let attributes = self.attributes.iter();
        let attributes = attributes.map(|(name, value)| attribute_bytes(name, value));
        self.body.len() + attributes.sum::<usize>()
    }
}

/// What one attribute counts: its name, its type, which is always a string, and its value.
pub fn attribute_bytes(name: &str, value: &str) -> usize {
    name.len() + "String".len() + value.len()
}

/// How much a channel takes at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChannelLimits {
    /// Messages in one call.
    pub batch_count: usize,
    /// Bytes of all messages of one call, as [`Message::bytes`] counts them.
    pub batch_bytes: usize,
    /// Bytes of one message.
    pub message_bytes: usize,
}

/// Why a message was not sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// Worth trying again: throttled, timed out, the service failed. It may have been accepted.
    #[error("{0}")]
    Retry(String),
    /// Will never succeed: no such queue, access denied, too large, refused content.
    #[error("{0}")]
    Permanent(String),
}

/// A queue, a topic, a broker or a bus.
///
/// Laws: `send` gets at most what [`Channel::limits`] allows, makes one call to the service (or one per
/// message where the service has no batches, in order), and gives one result per message in the order
/// given. A call that fails as a whole fails every message alike. It never retries by itself beyond
/// what the service's client does, and never panics on what the service says.
pub trait Channel: Send + Sync {
    /// How much it takes at once.
    fn limits(&self) -> ChannelLimits;

    /// Sends messages, in order.
    fn send<'a>(&'a self, messages: &'a [Message]) -> BoxFuture<'a, Vec<Result<(), SendError>>>;
}
