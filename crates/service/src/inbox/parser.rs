//! Parses messages of a queue, or rejects those that can never be stored. Pure.

mod padding;
mod path;

use std::time::Duration;

use antumbra_shadow::{DocumentError, Kind, Timestamp, View, text};

use super::{Body, MessageId, Source};
use crate::shadows::adapter::{ITEM_BYTES, check_document, document_bytes};
use crate::text::InvalidText;
use antumbra_shadow::word_enum;

pub use padding::{InvalidPadding, Padding};
pub use path::{FieldPath, InvalidFieldPath};

/// Maximum bytes of a response over MQTT, by AWS IoT. Larger messages could not be read.
pub const RESPONSE_BYTES: usize = 128 * 1024;
/// Maximum bytes of a topic, by AWS IoT. Messages with longer names could not be requested.
pub const TOPIC_BYTES: usize = 256;
/// The longest topic that names a message, without the names themselves.
const TOPIC: &str = "request/delete//";
/// Bytes of the item's other attributes, rounded up.
const OTHER_ATTRIBUTES_BYTES: usize = 128;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboxMessage {
    pub source: Source,
    pub id: MessageId,
    pub body: Body,
    pub received_at: Timestamp,
    pub expires_at: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IncomingMessage<'a> {
    pub text: &'a str,
    /// Id of the message when it was first sent, the same at every receive.
    pub queue_id: &'a str,
    /// Time of the first send, by the queue's clock.
    pub sent_milliseconds: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageParser {
    /// Field of the source.
    pub uuid: FieldPath,
    /// Field of the position among the messages of the source.
    pub message_id: FieldPath,
    /// Padding of whole numbers with zeros, so that they sort as numbers.
    pub padding: Padding,
    /// Retention of messages; `None` to keep them until they are deleted.
    pub retention: Option<Duration>,
}

impl Default for MessageParser {
    /// Source in `thingName`, position in `epochTime`, numbers padded to ten digits.
    fn default() -> MessageParser {
        MessageParser {
            uuid: FieldPath::of("thingName"),
            message_id: FieldPath::of("epochTime"),
            padding: Padding::default(),
            retention: None,
        }
    }
}

/// Rejection of a message that can never be stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {detail}", reason.as_str())]
pub struct Rejection {
    pub reason: RejectionCode,
    /// Detail, for people: limit and size, or the place; never the content.
    pub detail: String,
}

word_enum! {
    pub enum RejectionCode as "rejection code" {
        NotJson = "NotJson",
        NotAnObject = "NotAnObject",
        UuidMissing = "UuidMissing",
        UuidInvalid = "UuidInvalid",
        MessageIdMissing = "MessageIdMissing",
        MessageIdInvalid = "MessageIdInvalid",
        /// It is too large for an item or a response over MQTT, or its names for a topic.
        TooLarge = "TooLarge",
        /// The store cannot keep it exactly: numbers out of range, a name twice or empty, too many levels.
        Unstorable = "Unstorable",
        /// Its source has as many messages as the store can hold of one.
        SourceFull = "SourceFull",
    }
}

impl RejectionCode {
    pub fn because(self, detail: impl Into<String>) -> Rejection {
        Rejection {
            reason: self,
            detail: detail.into(),
        }
    }
}

impl MessageParser {
    /// Parses a message. Its id is `<field>-<sent, in milliseconds>-<id in the queue>`, the same at every receive.
    pub fn read(
        &self,
        incoming: &IncomingMessage<'_>,
        now: Timestamp,
    ) -> Result<InboxMessage, Rejection> {
        let body = Body::parse(incoming.text).map_err(rejected_body)?;
        let root = body.document().view();
        let uuid = field(
            root,
            &self.uuid,
            RejectionCode::UuidMissing,
            RejectionCode::UuidInvalid,
        )?;
        let source = Source::new(uuid).map_err(|fault| self.uuid_fault(&fault))?;
        let invalid = |fault: String| {
            let field = &self.message_id;
            RejectionCode::MessageIdInvalid.because(format!("the field {field}: {fault}"))
        };
        let place = field(
            root,
            &self.message_id,
            RejectionCode::MessageIdMissing,
            RejectionCode::MessageIdInvalid,
        )?;
        if place.is_empty() {
            return Err(invalid("it is empty".to_owned()));
        }
        let found = self.message_id.find(root);
        let is_number = found.is_some_and(|found| found.kind() == Kind::Number);
        let place = self.padding.pad(&place, is_number).map_err(invalid)?;
        let sent = incoming.sent_milliseconds;
        let id = format!("{place}-{sent}-{}", incoming.queue_id);
        let id = MessageId::new(id).map_err(|fault| invalid(fault.to_string()))?;
        let message = InboxMessage {
            source,
            id,
            body,
            received_at: now,
            expires_at: self.retention.map(|retention| now.after(retention)),
        };
        check_document(message.body.document())
            .map_err(|fault| RejectionCode::Unstorable.because(fault.to_string()))?;
        message.check_sizes()?;
        Ok(message)
    }

    fn uuid_fault(&self, fault: &InvalidText) -> Rejection {
        RejectionCode::UuidInvalid.because(format!("the field {}: {fault}", self.uuid))
    }
}

impl InboxMessage {
    /// Returns the bytes of the response to `get`: `{"body":…,"messageId":"…","uuid":"…"}`.
    pub fn response_bytes(&self) -> usize {
        let mut names = String::new();
        text::escape_into(&mut names, self.id.as_str());
        text::escape_into(&mut names, self.source.as_str());
        r#"{"body":,"messageId":"","uuid":""}"#.len() + self.body.as_json().len() + names.len()
    }

    /// Returns the maximum bytes of the item and its index entry.
    pub fn item_bytes(&self) -> usize {
        let names = self.source.as_str().len() + 2 * self.id.as_str().len();
        document_bytes(self.body.document())
            + self.body.written().map_or(0, str::len)
            + 2 * (names + OTHER_ATTRIBUTES_BYTES)
    }

    fn check_sizes(&self) -> Result<(), Rejection> {
        let topic = TOPIC.len() + self.source.as_str().len() + self.id.as_str().len();
        for (what, bytes, limit) in [
            ("the topic of a request for it", topic, TOPIC_BYTES),
            (
                "the response with it",
                self.response_bytes(),
                RESPONSE_BYTES,
            ),
            ("the item", self.item_bytes(), ITEM_BYTES),
        ] {
            if bytes > limit {
                let detail = format!("{what} would have {bytes} bytes, the limit is {limit}");
                return Err(RejectionCode::TooLarge.because(detail));
            }
        }
        Ok(())
    }
}

fn rejected_body(fault: DocumentError) -> Rejection {
    let reason = match fault {
        DocumentError::Syntax(_) | DocumentError::NotUtf8 { .. } => RejectionCode::NotJson,
        DocumentError::NotAnObject { .. } => RejectionCode::NotAnObject,
        DocumentError::TooLong { .. } => RejectionCode::TooLarge,
        DocumentError::DuplicateKey { .. } => {
            // The name is part of the content.
            return RejectionCode::Unstorable.because("an object has a name twice");
        }
        _ => RejectionCode::Unstorable,
    };
    reason.because(fault.to_string())
}

/// Reads a string or a whole number as text. A whole number is read as its digits: `5`, `5.0` and `50e-1` are equal.
fn field(
    root: View<'_>,
    path: &FieldPath,
    missing: RejectionCode,
    invalid: RejectionCode,
) -> Result<String, Rejection> {
    let Some(found) = path.find(root) else {
        return Err(missing.because(format!("there is no field {path}")));
    };
    let wrong = |what: &str| {
        let detail = format!("the field {path} holds {what}, not a string or a whole number");
        Err(invalid.because(detail))
    };
    match found.kind() {
        Kind::String => Ok(found.as_str().unwrap_or_default().into_owned()),
        Kind::Number if found.raw().contains('.') => wrong("a number with a fraction"),
        Kind::Number => Ok(found.raw().to_owned()),
        Kind::Null => wrong("null"),
        Kind::Bool => wrong("a boolean"),
        Kind::Array => wrong("an array"),
        Kind::Object => wrong("an object"),
    }
}
