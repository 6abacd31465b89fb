//! Error responses of the inbox over MQTT. Responses of success are defined beside their operations, in
//! `message-requests`.

use serde::Serialize;

/// An error response. Unknown members are left out; the error comes first, other members by name.
#[derive(Debug, Clone, Copy, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InboxErrorResponse<'a> {
    /// Sentence for people. Those of `query`, `get`, `next` and `delete` are a contract with existing clients.
    pub error: &'a str,
    /// Code for programs. Absent if there simply is no such message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<&'a str>,
    /// Size of the request or response that is too large.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<usize>,
    /// The message in the request's topic.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub message_id: &'a str,
    /// The message in the request's topic, if it is a bound.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub specified_message_id: &'a str,
    /// The source in the request's topic.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub uuid: &'a str,
}

impl InboxErrorResponse<'_> {
    pub fn to_json(&self) -> String {
        // Strings and numbers always have a JSON form.
        serde_json::to_string(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_comes_first_and_unknown_members_are_left_out() {
        let response = InboxErrorResponse {
            error: "No newer messages available",
            specified_message_id: "0",
            uuid: "a\"b",
            ..InboxErrorResponse::default()
        };
        assert_eq!(
            response.to_json(),
            r#"{"error":"No newer messages available","specifiedMessageId":"0","uuid":"a\"b"}"#
        );
    }
}
