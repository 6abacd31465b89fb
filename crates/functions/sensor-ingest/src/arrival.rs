//! Messages as they arrive, whichever queue they come from. Pure.

use antumbra_shadow::Timestamp;
use antumbra_wire::events::rabbitmq::{self, NotText, RabbitEventError, RabbitMessage};
use antumbra_wire::events::sqs::{self, QueueMessage, SqsEventError};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::redelivered::Redelivered;

/// Why an event cannot be taken at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// As an event of SQS.
    #[error(transparent)]
    Sqs(#[from] SqsEventError),
    /// As an event of RabbitMQ.
    #[error(transparent)]
    RabbitMq(#[from] RabbitEventError),
}

/// A message that arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IncomingSignal {
    /// What its queue knows it by.
    pub id: String,
    /// What was sent, or that it is no text.
    pub text: Result<String, NotText>,
    /// When its sensor was heard: when the queue took the message, by the queue's clock.
    pub sent: Timestamp,
    /// What stands in for the time of a sensor that says none.
    pub time: Timestamp,
    /// What stands in for the number of a sensor that says none: sorts as the messages do where the queue
    /// keeps them in order, and is the same at every delivery.
    pub number: String,
    /// The group whose order is kept.
    pub group: Option<String>,
    /// The queue's name.
    pub queue: String,
    /// Where the queue is found: its ARN, or `rabbitmq:` and its name.
    pub source: String,
}

/// The messages of an event, in order, and whether single ones can be delivered again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IncomingSignals {
    pub(crate) messages: Vec<IncomingSignal>,
    /// Amazon MQ delivers all of a batch again or nothing.
    pub(crate) all_or_nothing: bool,
}

/// Reads an event of either kind.
pub(crate) fn read(
    event: &[u8],
    now: Timestamp,
    redelivered: &Redelivered,
) -> Result<IncomingSignals, EventError> {
    if rabbitmq::is_event(event) {
        let messages = rabbitmq::read(event)?.into_iter().enumerate();
        let messages = messages.map(|(at, message)| of_rabbitmq(message, at, now, redelivered));
        return Ok(IncomingSignals {
            messages: messages.collect(),
            all_or_nothing: true,
        });
    }
    let messages = sqs::read(event)?.into_iter().map(of_sqs);
    Ok(IncomingSignals {
        messages: messages.collect(),
        all_or_nothing: false,
    })
}

fn of_sqs(message: QueueMessage<'_>) -> IncomingSignal {
    // Two messages of one millisecond: a FIFO queue says which is first, any other knows no first.
    let number = match &message.sequence {
        Some(sequence) => format!("{sequence:0>20}"),
        None => message.id.to_string(),
    };
    let queue = message.queue_arn.rsplit(':').next().unwrap_or_default();
    IncomingSignal {
        queue: queue.to_owned(),
        source: message.queue_arn.to_string(),
        id: message.id.into_owned(),
        text: Ok(message.body.into_owned()),
        sent: message.sent,
        time: message.sent,
        number,
        group: message.group.map(|group| group.into_owned()),
    }
}

/// RabbitMQ does not say when it took a message. What a publisher says is to the second and by the
/// publisher's clock, so it neither tells which of two messages is first nor that a sensor was heard.
/// What counts is the arrival; those of one event are a nanosecond apart, in their order.
fn of_rabbitmq(
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
    /// What was sent, as a queue of SQS can hold it: of text with characters it does not take, and of what
    /// is no text, base64; of what is too long, as much as fits.
    pub(crate) fn quotable(&self, limit: usize) -> String {
        let mut text = match &self.text {
            Ok(text) if text.is_empty() => "(empty)".to_owned(),
            Ok(text) if text.chars().all(is_quotable) => text.clone(),
            Ok(text) => STANDARD.encode(text),
            Err(NotText(base64)) if base64.chars().all(is_quotable) => base64.clone(),
            Err(NotText(other)) => STANDARD.encode(other),
        };
        text.truncate(text.floor_char_boundary(limit));
        text
    }
}

fn is_quotable(character: char) -> bool {
    matches!(character, '\t' | '\n' | '\r' | ' '..='\u{FFFD}' | '\u{10000}'..)
}
