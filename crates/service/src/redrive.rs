//! Failed messages (undeliverable, quarantined or dead-lettered), and the ports to move them back to their source.
//!
//! `notify::redrive` decides where each message goes and moves it; `publish` and `dynamodb` implement the ports.

use std::collections::BTreeMap;

use antumbra_shadow::Timestamp;
use async_trait::async_trait;
use serde::Deserialize;

use crate::deliveries::DeliveryMessage;
use crate::store::{ErrorClass, SendFuture};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FailedMessage {
    pub id: String,
    pub receipt: String,
    pub body: String,
    pub attributes: BTreeMap<String, Attribute>,
    /// ARN of the source queue if the message is a dead letter. The queue service sets it; senders cannot.
    pub dead_letter_of: Option<String>,
    pub group: Option<String>,
    pub deduplication: Option<String>,
    pub sent_milliseconds: u64,
}

/// An attribute of a message: text or bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attribute {
    pub data_type: String,
    pub text: Option<String>,
    pub bytes: Option<Vec<u8>>,
}

impl Attribute {
    /// Creates an attribute of type `String`.
    pub fn text(text: String) -> Attribute {
        Attribute {
            data_type: "String".to_owned(),
            text: Some(text),
            bytes: None,
        }
    }
}

impl FailedMessage {
    /// Returns the text of an attribute; `None` if it is absent or has bytes.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.get(name)?.text.as_deref()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QueueError {
    #[error("the queue {0} does not exist")]
    NotFound(String),
    #[error("cannot connect")]
    NoConnection,
    #[error("{0}")]
    Failed(String),
}

impl QueueError {
    pub fn class(&self) -> ErrorClass {
        match self {
            QueueError::NotFound(_) => ErrorClass::NotFound,
            QueueError::NoConnection | QueueError::Failed(_) => ErrorClass::Unavailable,
        }
    }
}

pub trait FailedQueue: Send + Sync {
    /// Returns `true` for a FIFO queue, which keeps the order of each message group.
    fn is_fifo(&self) -> bool;

    /// Receives some messages and hides them from other consumers for the visibility timeout. Returns none if the queue
    /// is empty.
    fn receive(&self) -> impl SendFuture<Result<Vec<FailedMessage>, QueueError>>;

    /// Receives messages like [`FailedQueue::receive`], but does not wait if the queue counts none. A message that was
    /// sent a moment ago may be missing.
    fn receive_counted(&self) -> impl SendFuture<Result<Vec<FailedMessage>, QueueError>>;

    fn release(&self, receipts: &[String]) -> impl SendFuture<Result<(), QueueError>>;

    fn delete(&self, receipt: &str) -> impl SendFuture<Result<(), QueueError>>;

    /// Sends a message to another queue, given by name, URL or ARN. A repeated call may send a second copy.
    fn send(&self, message: &FailedMessage, queue: &str)
    -> impl SendFuture<Result<(), QueueError>>;
}

/// The records of a stream's shard that an event source discarded after its last attempt. Both ends are included.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordRange {
    pub stream_arn: String,
    pub shard_id: String,
    pub start_sequence_number: String,
    pub end_sequence_number: String,
    /// Number of records.
    #[serde(default)]
    pub batch_size: usize,
}

impl RecordRange {
    /// Parses the message that the event source of a stream sends about discarded records; `None` for any other text.
    pub fn parse(text: &str) -> Option<RecordRange> {
        #[derive(Deserialize)]
        struct FailureMessage {
            #[serde(rename = "DDBStreamBatchInfo")]
            records: RecordRange,
        }
        let message: FailureMessage = serde_json::from_str(text).ok()?;
        Some(message.records)
    }
}

/// Reads discarded records again, as long as the stream retains them.
#[async_trait]
pub trait RecordSource: Send + Sync {
    /// Returns the records in order as Lambda events in JSON, or the reason why some are missing.
    async fn events(&self, range: &RecordRange) -> Result<Vec<Vec<u8>>, String>;
}

/// Queues dead deliveries again: a delivery that is recorded as dead is not sent because its message is back in a queue.
#[async_trait]
pub trait DeadLetterHandler: Send + Sync {
    async fn redeliver(&self, letter: &DeliveryMessage) -> Result<(), String>;
}

/// Makes updates of shadows that were published over MQTT.
#[async_trait]
pub trait UpdateHandler: Send + Sync {
    /// Makes the update in the event of a rule, by the time of the event.
    async fn update(&self, event: &[u8], deadline: Timestamp) -> Result<(), String>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_failures_of_stream_sources_are_parsed() {
        let message = r#"{"version":"1.0","DDBStreamBatchInfo":{"shardId":"s","startSequenceNumber":"1",
            "endSequenceNumber":"2","batchSize":2,"streamArn":"arn"}}"#;
        let range = RecordRange::parse(message).unwrap();
        assert_eq!((range.shard_id.as_str(), range.batch_size), ("s", 2));
        assert_eq!(RecordRange::parse(r#"{"requestPayload":{}}"#), None);
        assert_eq!(RecordRange::parse("no"), None);
    }
}
