//! Events of SQS queues.
//!
//! Unknown fields are ignored. A record that lacks a required field fails the whole event, because a batch item
//! failure needs the message's id.

use std::fmt;

use antumbra_shadow::Timestamp;
use aws_lambda_events::sqs::{SqsEvent, SqsMessage};

use crate::limits;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SqsEventError {
    /// It is not JSON, or a record lacks a required field.
    #[error("not an SQS event: {0}")]
    Shape(String),
    /// It has more records than a batch can have.
    #[error("more than {limit} records")]
    TooManyRecords { limit: usize },
    #[error("the event has {bytes} bytes, the limit is {limit}")]
    TooLong { bytes: usize, limit: usize },
    #[error("message {id} was sent at {sent:?}, which is not a time in milliseconds")]
    SentTime { id: String, sent: String },
}

/// `eventSource` of the records.
pub const SOURCE: &str = "aws:sqs";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueMessage {
    /// SQS message id, the same at every receive.
    pub id: String,
    /// Receipt handle of this receive; empty if the event has none.
    pub receipt: String,
    pub body: String,
    /// Time at which the queue accepted it.
    pub sent: Timestamp,
    /// Number of receives, including this one.
    pub receives: u32,
    /// Message group of a FIFO queue. `None` for a standard queue, whose groups do not order messages.
    pub group: Option<String>,
    /// Sequence number of a FIFO queue: increasing within the group.
    pub sequence: Option<String>,
    pub queue_arn: String,
    /// Id and time of the first send; those of this message unless it was redriven.
    pub origin: Origin,
}

/// Id and time of a message when it was first sent.
///
/// A redrive sends the message again, and SQS gives it another id and time. It carries its origin in an attribute, so
/// that it is still recognised. Anybody who may send messages can set the attribute: do not trust the time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    pub id: String,
    pub sent_milliseconds: u64,
}

impl Origin {
    pub const ATTRIBUTE: &str = "antumbra-origin";

    /// Parses the attribute; `None` if it is malformed.
    ///
    /// ```
    /// use antumbra_wire::events::sqs::Origin;
    /// let origin = Origin::parse("1564669332364-7d7efcff").unwrap();
    /// assert_eq!((origin.sent_milliseconds, origin.id.as_str()), (1564669332364, "7d7efcff"));
    /// assert_eq!(origin.to_string(), "1564669332364-7d7efcff");
    /// assert_eq!(Origin::parse("1564669332364-a/b"), None);
    /// ```
    pub fn parse(text: &str) -> Option<Origin> {
        let (milliseconds, id) = text.split_once('-')?;
        let is_id = |id: &str| id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        if id.is_empty() || id.len() > limits::QUEUE_ID_BYTES || !is_id(id) {
            return None;
        }
        Some(Origin {
            id: id.to_owned(),
            sent_milliseconds: milliseconds.parse().ok()?,
        })
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.sent_milliseconds, self.id)
    }
}

/// Reads the messages of an event, in order.
pub fn read(event: &[u8]) -> Result<Vec<QueueMessage>, SqsEventError> {
    if event.len() > limits::EVENT_BYTES {
        return Err(SqsEventError::TooLong {
            bytes: event.len(),
            limit: limits::EVENT_BYTES,
        });
    }
    let event: SqsEvent =
        serde_json::from_slice(event).map_err(|error| SqsEventError::Shape(error.to_string()))?;
    if event.records.len() > limits::RECORDS {
        return Err(SqsEventError::TooManyRecords {
            limit: limits::RECORDS,
        });
    }
    event.records.into_iter().map(message).collect()
}

fn message(mut record: SqsMessage) -> Result<QueueMessage, SqsEventError> {
    let id = required("messageId", record.message_id)?;
    let sent = required("SentTimestamp", record.attributes.remove("SentTimestamp"))?;
    let Ok(milliseconds) = sent.parse::<u64>() else {
        return Err(SqsEventError::SentTime { id, sent });
    };
    let queue_arn = required("eventSourceARN", record.event_source_arn)?;
    let receives = record.attributes.get("ApproximateReceiveCount");
    let receives = receives.and_then(|count| count.parse().ok()).unwrap_or(1);
    let origin = record.message_attributes.remove(Origin::ATTRIBUTE);
    let origin = origin.and_then(|attribute| Origin::parse(&attribute.string_value?));
    let origin = origin.unwrap_or_else(|| Origin {
        id: id.clone(),
        sent_milliseconds: milliseconds,
    });
    let fifo = queue_arn.ends_with(".fifo");
    let mut of_fifo = |name| record.attributes.remove(name).filter(|_| fifo);
    Ok(QueueMessage {
        id,
        receipt: record.receipt_handle.unwrap_or_default(),
        body: required("body", record.body)?,
        sent: Timestamp::from_nanoseconds(i128::from(milliseconds) * 1_000_000),
        receives,
        group: of_fifo("MessageGroupId"),
        sequence: of_fifo("SequenceNumber"),
        queue_arn,
        origin,
    })
}

fn required(name: &str, value: Option<String>) -> Result<String, SqsEventError> {
    value.ok_or_else(|| SqsEventError::Shape(format!("missing field `{name}`")))
}
