//! A request to the inbox over MQTT: what it asks, and where its one answer goes.
//!
//! `request/<operation>/<uuid>[/<messageId>]` with a JSON object that holds a `token`; the answer goes to
//! `response/<operation>/<token>`, or to the response topic of MQTT 5. Both parts are read apart from each
//! other, so that a request which is wrong in itself still has a [`ResponseAddress`], and a request that does
//! not say where to is answered on `response/<operation>/rejected`.
//!
//! Topics are read strictly: one level too many is refused, however well it begins. A device whose policy
//! allows `request/get/*/<itself>/*` must not reach another's messages by it.

mod payload;
mod response_address;

pub use payload::{ListMembers, RequestPayload, SendMembers};
pub use response_address::ResponseAddress;

use crate::events::rule::RuleEvent;
use crate::limits::REQUEST_BYTES;

/// What can be asked of the inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// The oldest and the newest message.
    Query,
    /// One message.
    Get,
    /// The message behind another.
    Next,
    /// The message before another.
    Prev,
    /// Many messages, a page at a time.
    List,
    /// Deletes one message.
    Delete,
    /// Puts a message for a device in the outbound queue.
    Send,
    /// Who was heard of.
    Devices,
}

impl Operation {
    /// All of them.
    pub const ALL: [Operation; 8] = [
        Operation::Query,
        Operation::Get,
        Operation::Next,
        Operation::Prev,
        Operation::List,
        Operation::Delete,
        Operation::Send,
        Operation::Devices,
    ];

    /// Its level in topics.
    pub fn word(self) -> &'static str {
        match self {
            Operation::Query => "query",
            Operation::Get => "get",
            Operation::Next => "next",
            Operation::Prev => "prev",
            Operation::List => "list",
            Operation::Delete => "delete",
            Operation::Send => "send",
            Operation::Devices => "devices",
        }
    }

    /// The function that serves it, and whose rule brings its requests.
    pub fn function(self) -> &'static str {
        match self {
            Operation::Query => "message-query",
            Operation::Get => "message-get",
            Operation::Next => "message-next",
            Operation::Prev => "message-prev",
            Operation::List => "message-list",
            Operation::Delete => "message-delete",
            Operation::Send => "message-send",
            Operation::Devices => "message-devices",
        }
    }

    /// What its topics look like, for people.
    fn shape(self) -> &'static str {
        match self {
            Operation::Query => "request/query/<uuid>",
            Operation::Get => "request/get/<uuid>/<messageId>",
            Operation::Next => "request/next/<uuid>/<messageId>",
            Operation::Prev => "request/prev/<uuid>/<messageId>",
            Operation::List => "request/list/<uuid>",
            Operation::Delete => "request/delete/<uuid>/<messageId>",
            Operation::Send => "request/send/<uuid>",
            Operation::Devices => "request/devices",
        }
    }
}

/// What a request names in its topic. A name that the operation does not have is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TopicNames<'a> {
    /// Whose messages.
    pub uuid: &'a str,
    /// Which of them.
    pub message_id: &'a str,
}

/// Why a request cannot be served, in a sentence for whoever sent it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// It makes no sense.
    #[error("{0}")]
    BadRequest(String),
    /// Its payload is larger than MQTT allows.
    #[error("The payload has {bytes} bytes, the limit is {REQUEST_BYTES}")]
    TooLarge {
        /// How many it has.
        bytes: usize,
    },
}

impl RequestError {
    /// The code that stands in the answer.
    pub fn code(&self) -> &'static str {
        match self {
            RequestError::BadRequest(_) => "BadRequest",
            RequestError::TooLarge { .. } => "TooLarge",
        }
    }

    pub(crate) fn bad(reason: impl Into<String>) -> RequestError {
        RequestError::BadRequest(reason.into())
    }
}

/// A request, and where its answer goes.
#[derive(Debug)]
pub struct Request<'a> {
    /// Where its one answer goes.
    pub address: ResponseAddress,
    /// What it names, or why it is refused.
    pub asked: Result<ParsedRequest<'a>, RequestError>,
}

/// What is asked.
#[derive(Debug)]
pub struct ParsedRequest<'a> {
    /// What its topic names.
    pub named: TopicNames<'a>,
    /// What its payload says.
    pub members: RequestPayload<'a>,
}

/// Reads a request of this operation.
///
/// ```
/// use antumbra_wire::inbox_request::{Operation, read};
/// use antumbra_wire::events::rule::RuleEvent;
/// let event = RuleEvent {
///     topic: "request/get/lamp-7/42".to_owned(),
///     payload: br#"{"token":"t1"}"#.to_vec(),
///     ..RuleEvent::default()
/// };
/// let request = read(&event, Operation::Get);
/// assert_eq!(request.address.topic, "response/get/t1");
/// let named = request.asked.unwrap().named;
/// assert_eq!((named.uuid, named.message_id), ("lamp-7", "42"));
/// ```
pub fn read(event: &RuleEvent, operation: Operation) -> Request<'_> {
    let members = RequestPayload::parse(&event.payload, event.response_topic.is_some());
    let (address, addressed) = ResponseAddress::of(event, operation, members.as_ref().ok());
    let asked = addressed.and_then(|()| {
        let bytes = event.payload.len();
        if bytes > REQUEST_BYTES {
            return Err(RequestError::TooLarge { bytes });
        }
        Ok(ParsedRequest {
            members: members?,
            named: named(&event.topic, operation)?,
        })
    });
    Request { address, asked }
}

/// The names in a topic that has exactly the levels of its operation, none of them empty.
fn named(topic: &str, operation: Operation) -> Result<TopicNames<'_>, RequestError> {
    let shape = operation.shape();
    let wrong = || RequestError::bad(format!("The topic must be {shape}"));
    let mut levels = topic.split('/');
    let mut named = TopicNames::default();
    for expected in shape.split('/') {
        let level = levels.next().filter(|level| !level.is_empty());
        let level = level.ok_or_else(wrong)?;
        match expected {
            "<uuid>" => named.uuid = level,
            "<messageId>" => named.message_id = level,
            expected if expected == level => {}
            _ => return Err(wrong()),
        }
    }
    if levels.next().is_some() {
        return Err(wrong());
    }
    Ok(named)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::MESSAGE_RULES;

    #[test]
    fn every_operation_has_its_rule() {
        for operation in Operation::ALL {
            let function = operation.function();
            let mut rules = MESSAGE_RULES.iter().filter(|r| r.function == function);
            let from = rules.next().unwrap().sql.rsplit("FROM ").next().unwrap();
            let expected = match operation {
                Operation::Devices => "'request/devices'".to_owned(),
                _ => format!("'request/{}/#'", operation.word()),
            };
            assert_eq!(from, expected);
            assert!(rules.next().is_none());
        }
        assert_eq!(MESSAGE_RULES.len(), Operation::ALL.len());
    }

    #[test]
    fn topics_have_exactly_their_levels() {
        let get = |topic| named(topic, Operation::Get).map(|n| (n.uuid, n.message_id));
        assert_eq!(get("request/get/a/b"), Ok(("a", "b")));
        assert_eq!(get("request/get/a b/ü"), Ok(("a b", "ü")));
        for topic in [
            "request/get",
            "request/get/a",
            "request/get/a/",
            "request/get//b",
            "request/get/a/b/",
            "request/get/a/b/c",
            "request/get/VICTIM/b/a/c",
            "/request/get/a/b",
            "request//get/a/b",
            "request/query/a/b",
            "Request/get/a/b",
            "",
        ] {
            let told = get(topic).unwrap_err().to_string();
            let expected = "The topic must be request/get/<uuid>/<messageId>";
            assert_eq!(told, expected, "{topic}");
        }
        assert!(named("request/devices", Operation::Devices).is_ok());
        assert!(named("request/devices/a", Operation::Devices).is_err());
        assert!(named("request/query/a", Operation::Query).is_ok());
        assert!(named("request/query/a/b", Operation::Query).is_err());
    }
}
