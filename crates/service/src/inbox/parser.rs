//! From the text of a queue's message to a message of the inbox, or to the reason why it can never be
//! one. Pure.

mod padding;
mod path;

use std::time::Duration;

use antumbra_shadow::{DocumentError, Kind, Timestamp, View, text};

use super::{Body, MessageId, Source};
use crate::shadows::adapter::{ITEM_BYTES, check_document, document_bytes};
use crate::text::InvalidText;

pub use padding::{InvalidPadding, Padding};
pub use path::{FieldPath, InvalidFieldPath};

/// Bytes of an answer over MQTT, which AWS IoT limits: a message that no answer could hold is not taken.
pub const ANSWER_BYTES: usize = 128 * 1024;
/// Bytes of a topic, which AWS IoT limits: a message that no request could name is not taken.
pub const TOPIC_BYTES: usize = 256;
/// The longest topic that names a message, without the names themselves.
const TOPIC: &str = "request/delete//";
/// The item's attributes and what they take besides body and names, rounded up.
const OTHER_ATTRIBUTES_BYTES: usize = 128;

/// A message of the inbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboxMessage {
    /// Source.
    pub source: Source,
    /// Id within the source.
    pub id: MessageId,
    /// Content as sent.
    pub body: Body,
    /// Time at which it was received.
    pub received_at: Timestamp,
    /// Time at which it expires, if ever.
    pub expires_at: Option<Timestamp>,
}

/// A message as a queue hands it over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IncomingMessage<'a> {
    /// Content as sent.
    pub text: &'a str,
    /// The queue's id of it: the same however often it is handed over.
    pub queue_id: &'a str,
    /// Sent time, by the queue's clock.
    pub sent: Timestamp,
}

/// Parser of incoming messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageParser {
    /// The field that says who a message is from.
    pub uuid: FieldPath,
    /// The field that says where it stands among the messages of its source.
    pub message_id: FieldPath,
    /// Padding of whole numbers with zeros, so that they sort as numbers.
    pub padding: Padding,
    /// Retention of messages; `None` to keep them until they are deleted.
    pub retention: Option<Duration>,
}

impl Default for MessageParser {
    /// Source in `thingName`, position in `epochTime`.
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
    /// For programs.
    pub reason: RejectionCode,
    /// For people: the limit and the figure, or the place, never the content.
    pub detail: String,
}

/// Reason of a rejection, as one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RejectionCode {
    /// It is not JSON.
    NotJson,
    /// It is JSON, but not an object.
    NotAnObject,
    /// It has no field that says who it is from.
    UuidMissing,
    /// That field holds nothing that can be a source.
    UuidInvalid,
    /// It has no field that says where it stands.
    MessageIdMissing,
    /// That field holds nothing that can be part of an id.
    MessageIdInvalid,
    /// It is too large for an item, for an answer over MQTT, or its names are for a topic.
    TooLarge,
    /// It holds what the store cannot keep exactly: numbers out of range, a name twice or empty, too many
    /// levels.
    Unstorable,
    /// Its source has as many messages as the store can hold of one.
    SourceFull,
}

impl RejectionCode {
    /// As it is written in the quarantine.
    pub fn as_str(self) -> &'static str {
        match self {
            RejectionCode::NotJson => "NotJson",
            RejectionCode::NotAnObject => "NotAnObject",
            RejectionCode::UuidMissing => "UuidMissing",
            RejectionCode::UuidInvalid => "UuidInvalid",
            RejectionCode::MessageIdMissing => "MessageIdMissing",
            RejectionCode::MessageIdInvalid => "MessageIdInvalid",
            RejectionCode::TooLarge => "TooLarge",
            RejectionCode::Unstorable => "Unstorable",
            RejectionCode::SourceFull => "SourceFull",
        }
    }

    /// The refusal for this reason.
    pub fn because(self, detail: impl Into<String>) -> Rejection {
        Rejection {
            reason: self,
            detail: detail.into(),
        }
    }
}

impl MessageParser {
    /// Makes a message of what arrived. The id is `<field>-<sent, in milliseconds>-<the queue's id>`, so
    /// that handing over the same message again makes the same id.
    ///
    /// ```
    /// use antumbra_service::inbox::{IncomingMessage, MessageParser};
    /// use antumbra_shadow::Timestamp;
    /// let arrival = IncomingMessage {
    ///     text: r#"{"thingName":"testThing","epochTime":"1564669331","tempSensor1F":"72"}"#,
    ///     queue_id: "7d7efcff-bdcf-4d98-917e-d171d27cc0b4",
    ///     sent: Timestamp::parse("2019-08-01T14:22:12.364Z").unwrap(),
    /// };
    /// let message = MessageParser::default().read(&arrival, Timestamp::default()).unwrap();
    /// assert_eq!(message.source.as_str(), "testThing");
    /// assert_eq!(
    ///     message.id.as_str(),
    ///     "1564669331-1564669332364-7d7efcff-bdcf-4d98-917e-d171d27cc0b4",
    /// );
    /// ```
    pub fn read(
        &self,
        arrival: &IncomingMessage<'_>,
        now: Timestamp,
    ) -> Result<InboxMessage, Rejection> {
        let body = Body::parse(arrival.text).map_err(refused_body)?;
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
        let place = self.padding.pad(&place).map_err(invalid)?;
        let sent = arrival.sent.nanoseconds() / 1_000_000;
        let id = format!("{place}-{sent}-{}", arrival.queue_id);
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
    /// Bytes of the answer that holds the message: `{"body":…,"messageId":"…","uuid":"…"}`.
    pub fn answer_bytes(&self) -> usize {
        let mut names = String::new();
        text::escape_into(&mut names, self.id.as_str());
        text::escape_into(&mut names, self.source.as_str());
        r#"{"body":,"messageId":"","uuid":""}"#.len() + self.body.as_json().len() + names.len()
    }

    /// Bytes of the item that holds the message, and of its entry in an index, at most.
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
            ("an answer with it", self.answer_bytes(), ANSWER_BYTES),
            ("an item with it", self.item_bytes(), ITEM_BYTES),
        ] {
            if bytes > limit {
                let detail = format!("{what} would have {bytes} bytes, the limit is {limit}");
                return Err(RejectionCode::TooLarge.because(detail));
            }
        }
        Ok(())
    }
}

fn refused_body(fault: DocumentError) -> Rejection {
    let reason = match fault {
        DocumentError::Syntax(_) | DocumentError::NotUtf8 { .. } => RejectionCode::NotJson,
        DocumentError::NotAnObject { .. } => RejectionCode::NotAnObject,
        DocumentError::TooLong { .. } => RejectionCode::TooLarge,
        DocumentError::DuplicateKey { .. } => {
            // The name is part of the content.
            return RejectionCode::Unstorable.because("a name stands twice in one object");
        }
        _ => RejectionCode::Unstorable,
    };
    reason.because(fault.to_string())
}

/// A field that holds a string or a whole number, as text. However a whole number is written, it is taken
/// as its digits: `5`, `5.0` and `50e-1` are the same number.
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
