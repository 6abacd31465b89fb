//! What the inbox answers over MQTT. Members stand in the order of their names, but for errors, which
//! begin with what is wrong.

use serde::Serialize;
use serde_json::value::RawValue;

/// Answers that say yes.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
#[allow(missing_docs)]
pub enum InboxResponse<'a> {
    /// Between which ids the messages of a source lie.
    Span {
        newest_message_id: &'a str,
        oldest_message_id: &'a str,
        uuid: &'a str,
    },
    /// A message.
    Message {
        body: &'a RawValue,
        message_id: &'a str,
        uuid: &'a str,
    },
    /// The message behind the given one.
    Next {
        next_message_id: &'a str,
        specified_message_id: &'a str,
        uuid: &'a str,
    },
    /// The message before the given one.
    Previous {
        previous_message_id: &'a str,
        specified_message_id: &'a str,
        uuid: &'a str,
    },
    /// A message that is there no more.
    Deleted { message_id: &'a str, uuid: &'a str },
    /// A message for a device is in the queue.
    Sent {
        idempotency_key: &'a str,
        uuid: &'a str,
    },
    /// A page of ids.
    Ids {
        #[serde(skip_serializing_if = "Option::is_none")]
        cursor: Option<&'a str>,
        message_ids: &'a [&'a str],
        uuid: &'a str,
    },
    /// A page of messages.
    Messages {
        #[serde(skip_serializing_if = "Option::is_none")]
        cursor: Option<&'a str>,
        messages: &'a [ListedMessage<'a>],
        uuid: &'a str,
    },
    /// A page of sources.
    Devices {
        #[serde(skip_serializing_if = "Option::is_none")]
        cursor: Option<&'a str>,
        devices: &'a [Device<'a>],
    },
}

/// A message in a page.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
#[allow(missing_docs)]
pub enum ListedMessage<'a> {
    /// Whole.
    Whole {
        body: &'a RawValue,
        message_id: &'a str,
    },
    /// By name only, with the reason: it fills an answer of its own.
    Name {
        error: &'a str,
        code: &'a str,
        message_id: &'a str,
    },
}

/// A source in a page.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Device<'a> {
    /// The beginning of the hour in which it was last heard of.
    pub last_contact: &'a str,
    /// Who.
    pub uuid: &'a str,
}

/// An answer that says no. What is not known is left out.
#[derive(Debug, Clone, Copy, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InboxErrorResponse<'a> {
    /// A sentence for people; those of the four first operations are a contract.
    pub error: &'a str,
    /// A word for programs, where something went wrong. That there is no message is nothing wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<&'a str>,
    /// How large what was too large is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<usize>,
    /// The message that was named.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub message_id: &'a str,
    /// The message that was named as a bound.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub specified_message_id: &'a str,
    /// Whose messages.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub uuid: &'a str,
}

impl InboxResponse<'_> {
    /// As the payload of a message.
    pub fn to_json(&self) -> String {
        text(self)
    }
}

impl InboxErrorResponse<'_> {
    /// As the payload of a message.
    pub fn to_json(&self) -> String {
        text(self)
    }
}

fn text(answer: &impl Serialize) -> String {
    // Texts, numbers and JSON alone: there is always a JSON form.
    serde_json::to_string(answer).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_stand_where_the_contract_has_them() {
        let body = RawValue::from_string(r#"{"t":72.50}"#.to_owned()).unwrap();
        let message = InboxResponse::Message {
            body: &body,
            message_id: "1-2-3",
            uuid: "a\"b",
        };
        assert_eq!(
            message.to_json(),
            r#"{"body":{"t":72.50},"messageId":"1-2-3","uuid":"a\"b"}"#
        );
        let refusal = InboxErrorResponse {
            error: "No newer messages available",
            specified_message_id: "0",
            uuid: "a",
            ..InboxErrorResponse::default()
        };
        assert_eq!(
            refusal.to_json(),
            r#"{"error":"No newer messages available","specifiedMessageId":"0","uuid":"a"}"#
        );
        let page = InboxResponse::Ids {
            cursor: None,
            message_ids: &["1", "2"],
            uuid: "a",
        };
        assert_eq!(page.to_json(), r#"{"messageIds":["1","2"],"uuid":"a"}"#);
    }
}
