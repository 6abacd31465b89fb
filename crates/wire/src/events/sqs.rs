//! The event that Lambda hands over for messages of an SQS queue.
//!
//! What AWS adds to it one day is stepped over; what a function cannot do without is asked for by name. A
//! record without it fails the whole event, since nobody could say which message is meant.

use std::borrow::Cow;

use antumbra_shadow::Timestamp;
use serde::Deserialize;

use crate::limits;

/// Why an event is none of a queue.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SqsEventError {
    /// It is not JSON, or lacks what every record has.
    #[error("not an event of a queue: {0}")]
    Shape(String),
    /// More records than a batch can have.
    #[error("more than {limit} records")]
    TooManyRecords {
        /// How many there may be.
        limit: usize,
    },
    /// More bytes than are read at all.
    #[error("the event has {bytes} bytes, the limit is {limit}")]
    TooLong {
        /// How many it has.
        bytes: usize,
        /// How many it may have.
        limit: usize,
    },
    /// A sent time that is none.
    #[error("message {id} was sent at {sent:?}, which is no time in milliseconds")]
    SentTime {
        /// The queue's id of the message.
        id: String,
        /// What stands there.
        sent: String,
    },
}

/// One message of a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueMessage<'a> {
    /// The queue's id of it: the same at every delivery.
    pub id: Cow<'a, str>,
    /// What names this delivery of it to the queue; empty where the event has none.
    pub receipt: Cow<'a, str>,
    /// Its text, as it was sent.
    pub body: Cow<'a, str>,
    /// When the queue took it, by the queue's clock.
    pub sent: Timestamp,
    /// How often it was delivered, this time included.
    pub receives: u32,
    /// The group within which order is kept. `None` where the queue keeps none: a standard queue may
    /// have groups too, but only to be fair to them.
    pub group: Option<Cow<'a, str>>,
    /// Where it stands among the messages of its group, if it has one: digits that rise.
    pub sequence: Option<Cow<'a, str>>,
    /// The queue.
    pub queue_arn: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "Records", borrow)]
    records: Vec<Record<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record<'a> {
    #[serde(borrow)]
    message_id: Cow<'a, str>,
    #[serde(borrow, default)]
    receipt_handle: Cow<'a, str>,
    #[serde(borrow)]
    body: Cow<'a, str>,
    #[serde(borrow)]
    attributes: Attributes<'a>,
    #[serde(rename = "eventSourceARN", borrow)]
    queue_arn: Cow<'a, str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Attributes<'a> {
    #[serde(borrow)]
    sent_timestamp: Cow<'a, str>,
    #[serde(borrow, default)]
    approximate_receive_count: Cow<'a, str>,
    #[serde(borrow, default)]
    message_group_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    sequence_number: Option<Cow<'a, str>>,
}

/// Reads the messages of an event, in their order.
///
/// ```
/// let event = br#"{"Records":[{"messageId":"m-1","body":"{\"on\":1}","eventSource":"aws:sqs",
///     "eventSourceARN":"arn:aws:sqs:us-east-1:000000000000:inbound",
///     "attributes":{"SentTimestamp":"1545082649183","ApproximateReceiveCount":"1"}}]}"#;
/// let messages = antumbra_wire::events::sqs::read(event)?;
/// assert_eq!(messages[0].body, r#"{"on":1}"#);
/// assert_eq!(messages[0].sent.to_string(), "2018-12-17T21:37:29.183Z");
/// # Ok::<(), antumbra_wire::events::sqs::SqsEventError>(())
/// ```
pub fn read(event: &[u8]) -> Result<Vec<QueueMessage<'_>>, SqsEventError> {
    if event.len() > limits::EVENT_BYTES {
        return Err(SqsEventError::TooLong {
            bytes: event.len(),
            limit: limits::EVENT_BYTES,
        });
    }
    let event: Event<'_> =
        serde_json::from_slice(event).map_err(|error| SqsEventError::Shape(error.to_string()))?;
    if event.records.len() > limits::RECORDS {
        return Err(SqsEventError::TooManyRecords {
            limit: limits::RECORDS,
        });
    }
    event.records.into_iter().map(message).collect()
}

fn message(record: Record<'_>) -> Result<QueueMessage<'_>, SqsEventError> {
    let attributes = record.attributes;
    let Ok(sent) = attributes.sent_timestamp.parse::<u64>() else {
        return Err(SqsEventError::SentTime {
            id: record.message_id.into_owned(),
            sent: attributes.sent_timestamp.into_owned(),
        });
    };
    let fifo = record.queue_arn.ends_with(".fifo");
    Ok(QueueMessage {
        id: record.message_id,
        receipt: record.receipt_handle,
        body: record.body,
        sent: Timestamp::from_nanoseconds(i128::from(sent) * 1_000_000),
        receives: attributes.approximate_receive_count.parse().unwrap_or(1),
        group: attributes.message_group_id.filter(|_| fifo),
        sequence: attributes.sequence_number.filter(|_| fifo),
        queue_arn: record.queue_arn,
    })
}
