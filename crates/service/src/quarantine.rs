//! The quarantine: a queue for messages that can never be processed.
//!
//! A quarantined message keeps its body and gets the attributes `reason` (one word, for programs), `source` (the
//! queue it came from), [`Origin`] and `detail` (a sentence, for people). It can be moved back to its source once the
//! reason is gone.

use std::sync::Arc;

use antumbra_shadow::Timestamp;

use antumbra_wire::events::sqs::Origin;
use antumbra_wire::limits::QUEUE_ID_BYTES;

use crate::clock::Clock;
use crate::notifications::{Channel, Message, attribute_bytes, dispatch};

/// Characters of a detail that are sent.
const DETAIL_CHARS: usize = 300;
/// Bytes reserved for a source: the longest ARN of a queue.
const SOURCE_BYTES: usize = 150;
/// Bytes reserved for an origin: a time and an id.
const ORIGIN_BYTES: usize = 24 + QUEUE_ID_BYTES;

/// A message that can never be processed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuarantinedMessage {
    /// Id given by the source queue.
    pub id: String,
    /// Body, unchanged.
    pub text: String,
    /// Source queue: its ARN or another name.
    pub source: String,
    /// Id and time of the first send, to recognise the message after a redrive.
    pub origin: Option<Origin>,
    /// Reason in one word, for programs.
    pub reason: &'static str,
    /// Reason in a sentence, for people.
    pub detail: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuarantineFailure {
    /// Position in the request.
    pub index: usize,
    pub reason: String,
}

#[derive(Clone)]
pub struct Quarantine(Arc<dyn Channel>);

impl Quarantine {
    pub fn new(queue: Arc<dyn Channel>) -> Quarantine {
        Quarantine(queue)
    }

    /// Returns the longest body that fits together with any reason and detail.
    pub fn text_bytes(&self) -> usize {
        let reason = attribute_bytes("reason", &"x".repeat(64));
        let detail = attribute_bytes("detail", "") + 4 * DETAIL_CHARS;
        let source = attribute_bytes("source", "") + SOURCE_BYTES;
        let origin = attribute_bytes(Origin::ATTRIBUTE, "") + ORIGIN_BYTES;
        (self.0.limits().message_bytes).saturating_sub(reason + source + origin + detail)
    }

    /// Sends messages and retries until the deadline. Returns, in order, those that may not have arrived; they
    /// must be received again, or they would be lost.
    pub async fn send(
        &self,
        refused: &[QuarantinedMessage],
        deadline: Timestamp,
        clock: &dyn Clock,
    ) -> Vec<QuarantineFailure> {
        if refused.is_empty() {
            return Vec::new();
        }
        let limit = self.0.limits().message_bytes;
        let all = refused.iter().enumerate();
        let outgoing: Vec<Message> = all.map(|(at, one)| outgoing(at, one, limit)).collect();
        let done = dispatch(Arc::clone(&self.0), &outgoing, deadline, clock).await;
        let in_time = |index| QuarantineFailure {
            index,
            reason: "the quarantine did not respond in time".to_owned(),
        };
        let refused = done.rejected.into_iter();
        let mut left: Vec<QuarantineFailure> = refused
            .map(|one| QuarantineFailure {
                index: one.index,
                reason: one.reason,
            })
            .chain(done.unsent.into_iter().map(in_time))
            .collect();
        left.sort_unstable_by_key(|one| one.index);
        left
    }
}

fn outgoing(position: usize, refused: &QuarantinedMessage, limit: usize) -> Message {
    let mut attributes = vec![("reason".to_owned(), refused.reason.to_owned())];
    // The body has priority: next to a body that nearly fills a message, the other attributes are cut.
    let mut taken = refused.text.len() + attribute_bytes("reason", refused.reason);
    let origin = refused.origin.as_ref().map(Origin::to_string);
    for (name, value) in [
        ("source", refused.source.clone()),
        (Origin::ATTRIBUTE, origin.unwrap_or_default()),
    ] {
        let bytes = attribute_bytes(name, &value);
        if !value.is_empty() && taken + bytes <= limit {
            taken += bytes;
            attributes.push((name.to_owned(), value));
        }
    }
    let room = limit.saturating_sub(taken + attribute_bytes("detail", ""));
    let mut detail: String = refused.detail.chars().take(DETAIL_CHARS).collect();
    detail.truncate(detail.floor_char_boundary(room));
    if !detail.is_empty() {
        attributes.push(("detail".to_owned(), detail));
    }
    Message {
        id: refused.id.clone(),
        // Order does not matter; a key per message fills batches.
        key: position.to_string(),
        body: refused.text.clone(),
        attributes,
        ..Message::default()
    }
}
