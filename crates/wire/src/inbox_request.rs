//! Requests to the inbox over MQTT.
//!
//! A request is published to `request/<operation>/<uuid>[/<messageId>]` with a JSON object that holds a
//! `token`. The response goes to `response/<operation>/<token>`, or to the response topic of MQTT 5. Topic and
//! payload are parsed independently of each other: an invalid request still has a [`ResponseAddress`], and a
//! request without a usable token gets its error on `response/<operation>/rejected`.
//!
//! A token with a dot is private: only the client whose id is before the last dot may use it.
//!
//! Topics are parsed strictly. One level too many is an error, because a device whose policy allows
//! `request/get/*/<itself>/*` must not reach the messages of others.

mod payload;
mod response_address;

pub use payload::{ListParameters, RequestPayload, SendParameters};
pub use response_address::{ResponseAddress, TokenPolicy};

use crate::events::rule::RuleEvent;
use crate::limits::REQUEST_BYTES;
use crate::rules::Operation;

/// Names in a request's topic. A name that the operation's topic does not have is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TopicNames<'a> {
    pub uuid: &'a str,
    pub message_id: &'a str,
}

/// Error of an invalid request, worded for its sender.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    #[error("{0}")]
    BadRequest(String),
    #[error("The payload has {bytes} bytes, the limit is {REQUEST_BYTES}")]
    TooLarge { bytes: usize },
}

impl RequestError {
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

#[derive(Debug)]
pub struct Request<'a> {
    pub address: ResponseAddress,
    /// The request, or its error.
    pub parsed: Result<ParsedRequest<'a>, RequestError>,
}

#[derive(Debug)]
pub struct ParsedRequest<'a> {
    pub operation: Operation,
    pub names: TopicNames<'a>,
    pub payload: RequestPayload<'a>,
}

/// Parses a request.
pub fn parse(event: &RuleEvent, operation: Operation, tokens: TokenPolicy) -> Request<'_> {
    let payload = RequestPayload::parse(&event.payload, event.response_topic.is_some());
    let of_payload = payload.as_ref().ok();
    let (address, valid_address) = ResponseAddress::of(event, operation, of_payload, tokens);
    let parsed = valid_address.and_then(|()| {
        let bytes = event.payload.len();
        if bytes > REQUEST_BYTES {
            return Err(RequestError::TooLarge { bytes });
        }
        Ok(ParsedRequest {
            operation,
            payload: payload?,
            names: topic_names(&event.topic, operation)?,
        })
    });
    Request { address, parsed }
}

/// Returns the names in a topic that has exactly the levels of its operation, none of them empty.
fn topic_names(topic: &str, operation: Operation) -> Result<TopicNames<'_>, RequestError> {
    let shape = operation.topic();
    let invalid = || RequestError::bad(format!("The topic must be {shape}"));
    let mut levels = topic.split('/');
    let mut names = TopicNames::default();
    for expected in shape.split('/') {
        let level = levels.next().filter(|level| !level.is_empty());
        let level = level.ok_or_else(invalid)?;
        match expected {
            "<uuid>" => names.uuid = level,
            "<messageId>" => names.message_id = level,
            expected if expected == level => {}
            _ => return Err(invalid()),
        }
    }
    if levels.next().is_some() {
        return Err(invalid());
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_must_have_exactly_the_levels_of_their_operation() {
        let get = |topic| topic_names(topic, Operation::Get).map(|n| (n.uuid, n.message_id));
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
            let error = get(topic).unwrap_err().to_string();
            let expected = "The topic must be request/get/<uuid>/<messageId>";
            assert_eq!(error, expected, "{topic}");
        }
        assert!(topic_names("request/devices", Operation::Devices).is_ok());
        assert!(topic_names("request/devices/a", Operation::Devices).is_err());
        assert!(topic_names("request/query/a", Operation::Query).is_ok());
        assert!(topic_names("request/query/a/b", Operation::Query).is_err());
    }
}
