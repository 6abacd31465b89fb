//! Payloads of inbox requests: a JSON object.
//!
//! Members that an operation does not know are ignored; `null` counts as absent.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::RequestError;

/// A request's payload. Members are kept as JSON text until an operation asks for them.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RequestPayload<'a> {
    #[serde(borrow)]
    token: Option<&'a RawValue>,
    #[serde(borrow)]
    limit: Option<&'a RawValue>,
    #[serde(borrow)]
    from: Option<&'a RawValue>,
    #[serde(borrow)]
    to: Option<&'a RawValue>,
    #[serde(borrow)]
    newest_first: Option<&'a RawValue>,
    #[serde(borrow)]
    bodies: Option<&'a RawValue>,
    #[serde(borrow)]
    cursor: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    idempotency_key: Option<&'a RawValue>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListParameters {
    pub limit: Option<usize>,
    /// Lowest id.
    pub from: Option<String>,
    /// Highest id.
    pub to: Option<String>,
    /// Newest first instead of oldest first.
    pub newest_first: bool,
    /// Whole messages instead of ids.
    pub bodies: bool,
    pub cursor: Option<String>,
}

#[derive(Debug, Clone)]
pub struct SendParameters<'a> {
    /// Any JSON, as the sender wrote it.
    pub message: &'a RawValue,
    /// Requests with the same key for the same device send one message.
    pub idempotency_key: Option<String>,
}

impl<'a> RequestPayload<'a> {
    /// Parses a payload. With `may_be_empty`, an empty payload counts as an empty object.
    pub(super) fn parse(
        payload: &'a [u8],
        may_be_empty: bool,
    ) -> Result<RequestPayload<'a>, RequestError> {
        if payload.is_empty() && may_be_empty {
            return Ok(RequestPayload::default());
        }
        // serde would also read an array, member by member.
        if payload.trim_ascii_start().starts_with(b"{") {
            return serde_json::from_slice(payload).map_err(|error| match error.is_data() {
                true => RequestError::bad(format!("The payload: {error}")),
                false => RequestError::bad("The payload is not JSON"),
            });
        }
        Err(RequestError::bad(
            match serde_json::from_slice::<IgnoredAny>(payload) {
                Ok(_) => "The payload is not a JSON object",
                Err(_) => "The payload is not JSON",
            },
        ))
    }

    pub(super) fn token(&self) -> Result<Option<String>, RequestError> {
        read("token", self.token, "a string")
    }

    pub fn list(&self) -> Result<ListParameters, RequestError> {
        Ok(ListParameters {
            limit: read("limit", self.limit, "a whole number above 0")?,
            from: read("from", self.from, "a string")?,
            to: read("to", self.to, "a string")?,
            newest_first: read("newestFirst", self.newest_first, "a boolean")?.unwrap_or(false),
            bodies: read("bodies", self.bodies, "a boolean")?.unwrap_or(false),
            cursor: read("cursor", self.cursor, "a string")?,
        })
    }

    pub fn send(&self) -> Result<SendParameters<'a>, RequestError> {
        let missing = || RequestError::bad("There is no message");
        Ok(SendParameters {
            message: self.message.ok_or_else(missing)?,
            idempotency_key: read("idempotencyKey", self.idempotency_key, "a string")?,
        })
    }
}

fn read<T: for<'de> Deserialize<'de>>(
    name: &str,
    value: Option<&RawValue>,
    kind: &str,
) -> Result<Option<T>, RequestError> {
    let invalid = |_| RequestError::bad(format!("{name} must be {kind}"));
    let value = value.map(|value| serde_json::from_str(value.get()));
    value.transpose().map_err(invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_members_are_read() {
        let text = br#"{"token":"t","limit":5,"from":"a","to":"b","newestFirst":true,"bodies":true,
            "cursor":"c","later":{},"message":{"a": 1.50},"idempotencyKey":null}"#;
        let payload = RequestPayload::parse(text, false).unwrap();
        assert_eq!(payload.token(), Ok(Some("t".to_owned())));
        let listed = payload.list().unwrap();
        let expected = ListParameters {
            limit: Some(5),
            from: Some("a".to_owned()),
            to: Some("b".to_owned()),
            newest_first: true,
            bodies: true,
            cursor: Some("c".to_owned()),
        };
        assert_eq!(listed, expected);
        let sent = payload.send().unwrap();
        assert_eq!(sent.message.get(), r#"{"a": 1.50}"#);
        assert_eq!(sent.idempotency_key, None);
    }

    #[test]
    fn errors_name_the_problem() {
        for (payload, error) in [
            ("", "The payload is not JSON"),
            ("{", "The payload is not JSON"),
            ("{} {}", "The payload is not JSON"),
            (r#"["t"]"#, "The payload is not a JSON object"),
            ("\"t\"", "The payload is not a JSON object"),
            ("null", "The payload is not a JSON object"),
        ] {
            let found = RequestPayload::parse(payload.as_bytes(), false).unwrap_err();
            assert_eq!(found.to_string(), error, "{payload}");
        }
        let duplicate = RequestPayload::parse(br#"{"token":"a","token":"b"}"#, false);
        let error = duplicate.unwrap_err().to_string();
        assert!(error.contains("duplicate field `token`"), "{error}");
        assert!(RequestPayload::parse(b"\xff", false).is_err());
        assert!(RequestPayload::parse(b"", true).is_ok());
        let error = |payload: &str| {
            let payload = RequestPayload::parse(payload.as_bytes(), false).unwrap();
            payload.list().unwrap_err().to_string()
        };
        assert_eq!(
            error(r#"{"limit":-1}"#),
            "limit must be a whole number above 0"
        );
        assert_eq!(error(r#"{"from":7}"#), "from must be a string");
        assert_eq!(error(r#"{"bodies":"yes"}"#), "bodies must be a boolean");
        let nothing = RequestPayload::parse(b"{}", false).unwrap();
        assert!(nothing.send().is_err());
    }
}
