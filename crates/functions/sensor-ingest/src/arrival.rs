//! Messages of an SQS or RabbitMQ event in one form. Pure.

use antumbra_shadow::Timestamp;
use antumbra_wire::events::rabbitmq::{self, NotText, RabbitEventError, RabbitMessage};
use antumbra_wire::events::sqs::{self, QueueMessage, SqsEventError};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::redelivered::Redelivered;

/// Error of an event that cannot be read at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    #[error(transparent)]
    Sqs(#[from] SqsEventError),
    #[error(transparent)]
    RabbitMq(#[from] RabbitEventError),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IncomingSignal {
    pub id: String,
    /// The body, or an error if it is not text.
    pub text: Result<String, NotText>,
    /// Time at which the queue accepted the message, by the queue's clock: the sensor was alive then.
    pub sent: Timestamp,
    /// Time of the signal if it carries none.
    pub time: Timestamp,
    /// Sequence of the signal if it carries none: sorts like the messages where the queue keeps them in
    /// order, and is the same at every delivery.
    pub number: String,
    pub group: Option<String>,
    pub queue: String,
    /// The queue's ARN, or `rabbitmq:` and its name.
    pub source: String,
}

/// The messages of an event, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IncomingSignals {
    pub(crate) messages: Vec<IncomingSignal>,
    /// Amazon MQ delivers a whole batch again or nothing.
    pub(crate) all_or_nothing: bool,
}

pub(crate) fn read(
    event: &[u8],
    now: Timestamp,
    redelivered: &Redelivered,
) -> Result<IncomingSignals, EventError> {
    match sqs::read(event) {
        Ok(messages) => Ok(IncomingSignals {
            messages: messages.into_iter().map(from_sqs).collect(),
            all_or_nothing: false,
        }),
        Err(SqsEventError::Shape(_)) if rabbitmq::is_event(event) => {
            let messages = rabbitmq::read(event)?.into_iter().enumerate();
            let messages =
                messages.map(|(at, message)| from_rabbitmq(message, at, now, redelivered));
            Ok(IncomingSignals {
                messages: messages.collect(),
                all_or_nothing: true,
            })
        }
        Err(error) => Err(error.into()),
    }
}

fn from_sqs(message: QueueMessage) -> IncomingSignal {
    // Orders messages of one millisecond: by sequence number in a FIFO queue, arbitrarily otherwise.
    let number = match &message.sequence {
        Some(sequence) => format!("{sequence:0>20}"),
        None => message.id.clone(),
    };
    let queue = message.queue_arn.rsplit(':').next().unwrap_or_default();
    let queue = queue.to_owned();
    IncomingSignal {
        queue,
        source: message.queue_arn,
        id: message.id,
        text: Ok(message.body),
        sent: message.sent,
        time: message.sent,
        number,
        group: message.group,
    }
}

/// RabbitMQ does not report when it accepted a message, and the publisher's timestamp has whole seconds of
/// the publisher's clock. So the arrival counts; messages of one event are a nanosecond apart, in order.
fn from_rabbitmq(
    message: RabbitMessage,
    at: usize,
    now: Timestamp,
    redelivered: &Redelivered,
) -> IncomingSignal {
    let arrived = Timestamp::from_nanoseconds(now.nanoseconds() + at as i128);
    let arrived = match message.redelivered {
        true => redelivered.first_arrival(&message.id).unwrap_or(arrived),
        false => arrived,
    };
    IncomingSignal {
        number: message.id.clone(),
        id: message.id,
        text: message.body,
        sent: arrived,
        time: arrived,
        group: None,
        source: format!("rabbitmq:{}", message.queue),
        queue: message.queue,
    }
}

impl IncomingSignal {
    /// The body in a form that SQS accepts: in base64 if it has characters that SQS rejects or is not text,
    /// and truncated to the limit.
    pub(crate) fn quarantine_text(&self, limit: usize) -> String {
        let mut text = match &self.text {
            Ok(text) if text.is_empty() => "(empty)".to_owned(),
            Ok(text) if text.chars().all(is_allowed_by_sqs) => text.clone(),
            Ok(text) => STANDARD.encode(text),
            Err(NotText(base64)) if base64.chars().all(is_allowed_by_sqs) => base64.clone(),
            Err(NotText(other)) => STANDARD.encode(other),
        };
        text.truncate(text.floor_char_boundary(limit));
        text
    }
}

fn is_allowed_by_sqs(character: char) -> bool {
    matches!(character, '\t' | '\n' | '\r' | ' '..='\u{FFFD}' | '\u{10000}'..)
}
