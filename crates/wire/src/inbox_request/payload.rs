//! The payload of a request: a JSON object. What an operation does not know is passed over, what it knows
//! must be of its kind; `null` is the same as nothing.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::RequestError;

/// What a payload says, each member as it stands there.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestPayload<'a> {
    #[serde(borrow, default)]
    token: Option<&'a RawValue>,
    #[serde(borrow, default)]
    limit: Option<&'a RawValue>,
    #[serde(borrow, default)]
    from: Option<&'a RawValue>,
    #[serde(borrow, default)]
    to: Option<&'a RawValue>,
    #[serde(borrow, default)]
    newest_first: Option<&'a RawValue>,
    #[serde(borrow, default)]
    bodies: Option<&'a RawValue>,
    #[serde(borrow, default)]
    cursor: Option<&'a RawValue>,
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    idempotency_key: Option<&'a RawValue>,
}

/// What a listing is asked for. What was not said is `None` or `false`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListMembers {
    /// At most so many.
    pub limit: Option<usize>,
    /// Not before this id.
    pub from: Option<String>,
    /// Not behind this id.
    pub to: Option<String>,
    /// The newest first.
    pub newest_first: bool,
    /// Whole messages instead of ids.
    pub bodies: bool,
    /// Where an earlier page ended.
    pub cursor: Option<String>,
}

/// What is to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SendMembers<'a> {
    /// Any JSON, as it was written.
    pub message: &'a str,
    /// What makes two sendings one.
    pub idempotency_key: Option<String>,
}

impl<'a> RequestPayload<'a> {
    /// Reads a payload. Nothing at all stands for an empty object where nothing is needed.
    pub(super) fn parse(
        payload: &'a [u8],
        may_be_empty: bool,
    ) -> Result<RequestPayload<'a>, RequestError> {
        if payload.is_empty() && may_be_empty {
            return Ok(RequestPayload::default());
        }
        let value: &RawValue = serde_json::from_slice(payload)
            .map_err(|_| RequestError::bad("The payload is not JSON"))?;
        // A list would be read as well, member by member.
        if !value.get().starts_with('{') {
            return Err(RequestError::bad("The payload is not a JSON object"));
        }
        serde_json::from_str(value.get())
            .map_err(|fault| RequestError::bad(format!("The payload: {fault}")))
    }

    /// Where the answer goes, if it says so.
    pub(super) fn token(&self) -> Result<Option<String>, RequestError> {
        read("token", self.token, "a string")
    }

    /// As a request for a page.
    pub fn list(&self) -> Result<ListMembers, RequestError> {
        Ok(ListMembers {
            limit: read("limit", self.limit, "a whole number above 0")?,
            from: read("from", self.from, "a string")?,
            to: read("to", self.to, "a string")?,
            newest_first: read("newestFirst", self.newest_first, "a boolean")?.unwrap_or(false),
            bodies: read("bodies", self.bodies, "a boolean")?.unwrap_or(false),
            cursor: read("cursor", self.cursor, "a string")?,
        })
    }

    /// As something to send.
    pub fn send(&self) -> Result<SendMembers<'a>, RequestError> {
        let message = self.message;
        let message = message.ok_or_else(|| RequestError::bad("There is no message"))?;
        Ok(SendMembers {
            message: message.get(),
            idempotency_key: read("idempotencyKey", self.idempotency_key, "a string")?,
        })
    }
}

fn read<T: for<'de> Deserialize<'de>>(
    name: &str,
    value: Option<&RawValue>,
    kind: &str,
) -> Result<Option<T>, RequestError> {
    let wrong = |_| RequestError::bad(format!("{name} must be {kind}"));
    let value = value.map(|value| serde_json::from_str(value.get()));
    value.transpose().map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_a_payload_may_say_is_read() {
        let payload =
            br#"{"token":"t","limit":5,"from":"a","to":"b","newestFirst":true,"bodies":true,
            "cursor":"c","later":{},"message":{"a": 1.50},"idempotencyKey":null}"#;
        let members = RequestPayload::parse(payload, false).unwrap();
        assert_eq!(members.token(), Ok(Some("t".to_owned())));
        let listed = members.list().unwrap();
        let expected = ListMembers {
            limit: Some(5),
            from: Some("a".to_owned()),
            to: Some("b".to_owned()),
            newest_first: true,
            bodies: true,
            cursor: Some("c".to_owned()),
        };
        assert_eq!(listed, expected);
        let sent = members.send().unwrap();
        assert_eq!(sent.message, r#"{"a": 1.50}"#);
        assert_eq!(sent.idempotency_key, None);
    }

    #[test]
    fn what_is_wrong_is_told() {
        for (payload, told) in [
            ("", "The payload is not JSON"),
            ("{", "The payload is not JSON"),
            ("{} {}", "The payload is not JSON"),
            (r#"["t"]"#, "The payload is not a JSON object"),
            ("\"t\"", "The payload is not a JSON object"),
            ("null", "The payload is not a JSON object"),
        ] {
            let fault = RequestPayload::parse(payload.as_bytes(), false).unwrap_err();
            assert_eq!(fault.to_string(), told, "{payload}");
        }
        let twice = RequestPayload::parse(br#"{"token":"a","token":"b"}"#, false);
        let told = twice.unwrap_err().to_string();
        assert!(told.contains("duplicate field `token`"), "{told}");
        assert!(RequestPayload::parse(b"\xff", false).is_err());
        assert!(RequestPayload::parse(b"", true).is_ok());
        let told = |payload: &str| {
            let members = RequestPayload::parse(payload.as_bytes(), false).unwrap();
            members.list().unwrap_err().to_string()
        };
        assert_eq!(
            told(r#"{"limit":-1}"#),
            "limit must be a whole number above 0"
        );
        assert_eq!(told(r#"{"from":7}"#), "from must be a string");
        assert_eq!(told(r#"{"bodies":"yes"}"#), "bodies must be a boolean");
        let nothing = RequestPayload::parse(b"{}", false).unwrap();
        assert!(nothing.send().is_err());
    }
}
