//! The quarantine: where messages go that can never be taken in, with the reason why.
//!
//! It is a queue like any other. A message lies there as it came, with the attributes `reason`, one word
//! for programs, `source`, the queue it came from, and `detail`, a sentence for people. So it can be put
//! back where it came from once the reason is gone. Nothing else waits for it: whoever puts it there goes
//! on with the next message.

use std::sync::Arc;

use antumbra_shadow::Timestamp;

use crate::clock::Clock;
use crate::notifications::{Channel, ChannelMessage, Message, attribute_bytes, dispatch};

/// Characters of a detail that are kept.
const DETAIL_CHARS: usize = 300;
/// Bytes of a source that are counted with: the longest ARN of a queue.
const SOURCE_BYTES: usize = 150;

/// A message that can never be taken in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuarantinedMessage {
    /// The queue's id of it.
    pub id: String,
    /// What was sent, as it was sent.
    pub text: String,
    /// The queue it came from: its ARN, or what else names it.
    pub source: String,
    /// One word, for programs.
    pub reason: &'static str,
    /// A sentence, for people.
    pub detail: String,
}

/// A message that could not even be put away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuarantineFailure {
    /// Its position among those given.
    pub index: usize,
    /// Why.
    pub reason: String,
}

/// Puts messages away that can never be taken in.
#[derive(Clone)]
pub struct Quarantine(Arc<dyn Channel>);

impl Quarantine {
    /// In the queue that this channel leads to.
    pub fn new(queue: Arc<dyn Channel>) -> Quarantine {
        Quarantine(queue)
    }

    /// Bytes of text that it takes with any reason and detail.
    pub fn text_bytes(&self) -> usize {
        let reason = attribute_bytes("reason", &"x".repeat(64));
        let detail = attribute_bytes("detail", "") + 4 * DETAIL_CHARS;
        let source = attribute_bytes("source", "") + SOURCE_BYTES;
        (self.0.limits().message_bytes).saturating_sub(reason + source + detail)
    }

    /// Puts messages away and tries again until the deadline. Returns those, in order, that may
    /// not be there; they must be delivered again, or they would be lost.
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
        let outgoing: Vec<ChannelMessage> = all.map(|(at, one)| outgoing(at, one, limit)).collect();
        let channels = [Arc::clone(&self.0)];
        let done = dispatch(&channels, &outgoing, deadline, clock).await;
        let in_time = |index| QuarantineFailure {
            index,
            reason: "no answer of the quarantine in time".to_owned(),
        };
        let refused = done.refused.into_iter();
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

fn outgoing(position: usize, refused: &QuarantinedMessage, limit: usize) -> ChannelMessage {
    let mut attributes = vec![("reason".to_owned(), refused.reason.to_owned())];
    // What was sent comes first: beside a text that all but fills a message, less is said of it.
    let mut taken = refused.text.len() + attribute_bytes("reason", refused.reason);
    let source = attribute_bytes("source", &refused.source);
    if !refused.source.is_empty() && taken + source <= limit {
        taken += source;
        attributes.push(("source".to_owned(), refused.source.clone()));
    }
    let room = limit.saturating_sub(taken + attribute_bytes("detail", ""));
    let mut detail: String = refused.detail.chars().take(DETAIL_CHARS).collect();
    detail.truncate(detail.floor_char_boundary(room));
    if !detail.is_empty() {
        attributes.push(("detail".to_owned(), detail));
    }
    ChannelMessage {
        channel: 0,
        message: Message {
            id: refused.id.clone(),
            // Order does not matter here; one key each lets batches be full.
            key: position.to_string(),
            body: refused.text.clone(),
            attributes,
            ..Message::default()
        },
    }
}
