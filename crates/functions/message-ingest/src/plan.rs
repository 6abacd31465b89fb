//! The decision: which messages can be stored, and which must wait for each other. Pure.

use std::collections::HashMap;

use antumbra_service::inbox::{InboxMessage, IncomingMessage, MessageParser, Rejection};
use antumbra_shadow::Timestamp;
use antumbra_wire::events::sqs::QueueMessage;

/// What is to be done with a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Task {
    /// It goes to the inbox.
    Store(Box<InboxMessage>),
    /// It can never be stored.
    Refuse(Rejection),
}

pub(crate) fn tasks(
    messages: &[QueueMessage<'_>],
    intake: &MessageParser,
    now: Timestamp,
) -> Vec<Task> {
    let task = |message: &QueueMessage<'_>| {
        let arrival = IncomingMessage {
            text: &message.body,
            queue_id: &message.id,
            sent: message.sent,
        };
        match intake.read(&arrival, now) {
            Ok(message) => Task::Store(Box::new(message)),
            Err(refusal) => Task::Refuse(refusal),
        }
    };
    messages.iter().map(task).collect()
}

/// Messages that are handled one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lane {
    /// Their positions, in order.
    pub(crate) messages: Vec<usize>,
    /// Whether nothing may be done behind a message that has to be delivered again.
    pub(crate) strict: bool,
}

/// Of a FIFO queue, the messages of one group wait for each other, the refused ones too. Of any other, the
/// messages of one source do, so that they are stored in the order they came in; one that fails holds up no
/// other.
pub(crate) fn lanes(messages: &[QueueMessage<'_>], tasks: &[Task]) -> Vec<Lane> {
    let mut lanes: Vec<Lane> = Vec::new();
    let mut known: HashMap<(bool, &str), usize> = HashMap::new();
    for (index, (message, task)) in messages.iter().zip(tasks).enumerate() {
        let key = match (&message.group, task) {
            (Some(group), _) => (true, &**group),
            (None, Task::Store(stored)) => (false, stored.source.as_str()),
            (None, Task::Refuse(_)) => continue,
        };
        let lane = *known.entry(key).or_insert(lanes.len());
        match lanes.get_mut(lane) {
            Some(lane) => lane.messages.push(index),
            None => lanes.push(Lane {
                messages: vec![index],
                strict: key.0,
            }),
        }
    }
    lanes
}
