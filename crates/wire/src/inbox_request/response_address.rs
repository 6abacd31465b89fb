//! Addresses of responses. Every request has one, and all of them are below `response/`.

use super::{RequestError, RequestPayload};
use crate::events::rule::RuleEvent;
use crate::limits::{TOKEN_CHARS, TOPIC_BYTES, TOPIC_SLASHES};
use crate::rules::Operation;

/// Prefix of all topics that a response may go to.
const RESPONSE: &str = "response/";

/// Topic and properties of the response to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponseAddress {
    /// The topic.
    pub topic: String,
    /// MQTT 5 correlation data of the request, in base64 as received.
    pub correlation_data: Option<String>,
    /// Topic to use if AWS IoT rejects `topic`; only if the sender chose that one.
    pub fallback_topic: Option<String>,
    /// The request has no usable address: the response goes to `response/<operation>/rejected`.
    pub rejected: bool,
}

impl ResponseAddress {
    /// The MQTT 5 response topic, else the topic of the token, else the one for rejected requests. The result
    /// is an error if the request asked for an address and it is invalid, or if it has none.
    pub(super) fn of(
        event: &RuleEvent,
        operation: Operation,
        payload: Option<&RequestPayload<'_>>,
    ) -> (ResponseAddress, Result<(), RequestError>) {
        let by_token = payload.map_or(Ok(None), |payload| token_topic(operation, payload));
        let address = |topic: String| ResponseAddress {
            topic,
            correlation_data: event.correlation_data.clone(),
            fallback_topic: None,
            rejected: false,
        };
        let rejected = format!("{RESPONSE}{}/rejected", operation.word());
        let chosen = event.response_topic.as_deref().map(check_response_topic);
        match (chosen, by_token) {
            (Some(Ok(topic)), by_token) => {
                let address = ResponseAddress {
                    fallback_topic: Some(by_token.ok().flatten().unwrap_or(rejected)),
                    ..address(topic.to_owned())
                };
                (address, Ok(()))
            }
            (Some(Err(error)), Ok(Some(topic))) => (address(topic), Err(error)),
            (None, Ok(Some(topic))) => (address(topic), Ok(())),
            (chosen, by_token) => {
                let address = ResponseAddress {
                    rejected: true,
                    ..address(rejected)
                };
                let error = match (chosen, by_token) {
                    (Some(Err(error)), _) | (_, Err(error)) => error,
                    _ => RequestError::bad("There is no token"),
                };
                // If the payload is malformed, its own error says more than a missing token.
                let result = payload.map_or(Ok(()), |_| Err(error));
                (address, result)
            }
        }
    }
}

/// The response topic for the payload's token, if it has one.
fn token_topic(
    operation: Operation,
    payload: &RequestPayload<'_>,
) -> Result<Option<String>, RequestError> {
    let Some(token) = payload.token()? else {
        return Ok(None);
    };
    let safe = |c: char| c.is_ascii_graphic() && !matches!(c, '/' | '+' | '#' | '$');
    let chars = token.len();
    let invalid = if token.is_empty() {
        "The token is empty".to_owned()
    } else if let Some(forbidden) = token.chars().find(|&c| !safe(c)) {
        format!("The token holds {forbidden:?}, which is not allowed")
    } else if chars > TOKEN_CHARS {
        format!("The token has {chars} characters, the limit is {TOKEN_CHARS}")
    } else {
        return Ok(Some(format!("{RESPONSE}{}/{token}", operation.word())));
    };
    Err(RequestError::BadRequest(invalid))
}

/// Checks an MQTT 5 response topic. The function publishes to it with its own permissions, not the sender's.
fn check_response_topic(topic: &str) -> Result<&str, RequestError> {
    let (bytes, slashes) = (topic.len(), topic.matches('/').count());
    let forbidden = |c: &char| matches!(c, '+' | '#') || c.is_control();
    let invalid = if bytes > TOPIC_BYTES {
        format!("has {bytes} bytes, the limit is {TOPIC_BYTES}")
    } else if slashes > TOPIC_SLASHES {
        format!("has {slashes} slashes, the limit is {TOPIC_SLASHES}")
    } else if !topic.starts_with(RESPONSE) {
        format!("must begin with {RESPONSE}")
    } else if let Some(forbidden) = topic.chars().find(forbidden) {
        format!("holds {forbidden:?}, which is not allowed")
    } else if topic.split('/').any(str::is_empty) {
        "has an empty level".to_owned()
    } else {
        return Ok(topic);
    };
    Err(RequestError::bad(format!("The response topic {invalid}")))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::parse;
    use super::*;

    fn event(payload: &str, response_topic: Option<&str>) -> RuleEvent {
        RuleEvent {
            topic: "request/query/lamp-7".to_owned(),
            payload: payload.as_bytes().to_vec(),
            response_topic: response_topic.map(str::to_owned),
            correlation_data: response_topic.map(|_| "AQID".to_owned()),
            ..RuleEvent::default()
        }
    }

    /// Topic of the response, and the error of the request.
    fn respond(payload: &str, response_topic: Option<&str>) -> (String, String) {
        let event = event(payload, response_topic);
        let request = parse(&event, Operation::Query);
        let error = request.parsed.err().map(|error| error.to_string());
        (request.address.topic, error.unwrap_or_default())
    }

    #[test]
    fn every_request_has_a_response_address() {
        let long = format!(r#"{{"token":"{}"}}"#, "x".repeat(128));
        let longer = format!(r#"{{"token":"{}"}}"#, "x".repeat(129));
        let deep = "response/".repeat(8) + "x";
        let wide = "response/".to_owned() + &"x".repeat(248);
        let rejected = "response/query/rejected";
        let by_token = "response/query/t";
        let t = r#"{"token":"t"}"#;
        let cases: &[(&str, Option<&str>, &str, &str)] = &[
            (t, None, by_token, ""),
            ("{}", None, rejected, "There is no token"),
            (r#"{"token":null}"#, None, rejected, "There is no token"),
            (r#"{"token":7}"#, None, rejected, "token must be a string"),
            (r#"{"token":""}"#, None, rejected, "The token is empty"),
            (
                r#"{"token":"a/b"}"#,
                None,
                rejected,
                "The token holds '/', which is not allowed",
            ),
            (
                r##"{"token":"#"}"##,
                None,
                rejected,
                "The token holds '#', which is not allowed",
            ),
            (
                r#"{"token":"$a"}"#,
                None,
                rejected,
                "The token holds '$', which is not allowed",
            ),
            (
                r#"{"token":"a b"}"#,
                None,
                rejected,
                "The token holds ' ', which is not allowed",
            ),
            (
                r#"{"token":"\u0007"}"#,
                None,
                rejected,
                "The token holds '\\u{7}', which is not allowed",
            ),
            (
                &longer,
                None,
                rejected,
                "The token has 129 characters, the limit is 128",
            ),
            ("nonsense", None, rejected, "The payload is not JSON"),
            ("", None, rejected, "The payload is not JSON"),
            // MQTT 5.
            ("", Some("response/a/b"), "response/a/b", ""),
            (t, Some("response/a"), "response/a", ""),
            (
                "nonsense",
                Some("response/a"),
                "response/a",
                "The payload is not JSON",
            ),
            (
                t,
                Some("other/a"),
                by_token,
                "The response topic must begin with response/",
            ),
            (
                t,
                Some("$aws/things/a/shadow"),
                by_token,
                "The response topic must begin with response/",
            ),
            (
                "{}",
                Some("response/+"),
                rejected,
                "The response topic holds '+', which is not allowed",
            ),
            (
                "",
                Some("response/#"),
                rejected,
                "The response topic holds '#', which is not allowed",
            ),
            (
                "",
                Some("response/"),
                rejected,
                "The response topic has an empty level",
            ),
            (
                "",
                Some("response//a"),
                rejected,
                "The response topic has an empty level",
            ),
            (
                "",
                Some("responses/a"),
                rejected,
                "The response topic must begin with response/",
            ),
            (
                "",
                Some(&deep),
                rejected,
                "The response topic has 8 slashes, the limit is 7",
            ),
            (
                "",
                Some(&wide),
                rejected,
                "The response topic has 257 bytes, the limit is 256",
            ),
            ("nonsense", Some("a"), rejected, "The payload is not JSON"),
        ];
        for (payload, chosen, topic, error) in cases {
            let expected = ((*topic).to_owned(), (*error).to_owned());
            assert_eq!(respond(payload, *chosen), expected, "{payload} {chosen:?}");
        }
        assert_eq!(respond(&long, None).1, "");
    }

    #[test]
    fn correlation_data_is_repeated_and_a_chosen_topic_has_a_fallback() {
        let chosen = event(r#"{"token":"t"}"#, Some("response/a"));
        let address = parse(&chosen, Operation::Query).address;
        assert_eq!(address.correlation_data.as_deref(), Some("AQID"));
        assert_eq!(address.fallback_topic.as_deref(), Some("response/query/t"));
        let chosen = event("", Some("response/a"));
        let address = parse(&chosen, Operation::Query).address;
        let rejected = Some("response/query/rejected");
        assert_eq!(address.fallback_topic.as_deref(), rejected);
        assert!(!address.rejected);
    }

    proptest! {
        /// Any input has a response address below `response/`.
        #[test]
        fn responses_stay_below_their_prefix(
            topic in "(request|/|get|query|[a-z+#$/]){0,6}",
            token in proptest::option::of(r#"[ -~é/+#$]{0,140}"#),
            nonsense in proptest::option::of(any::<Vec<u8>>()),
            response_topic in proptest::option::of(
                prop_oneof!["(response|/|[a-z+#$/]|\\PC){0,12}", "response/[ -~]{0,260}"]
            ),
            operation in proptest::sample::select(Operation::ALL),
        ) {
            let payload = token.map_or(serde_json::json!({}), |token| serde_json::json!({"token": token}));
            let event = RuleEvent {
                payload: nonsense.unwrap_or_else(|| payload.to_string().into_bytes()),
                topic,
                response_topic,
                ..RuleEvent::default()
            };
            let request = parse(&event, operation);
            let fallback = request.address.fallback_topic.iter();
            for to in fallback.chain([&request.address.topic]) {
                prop_assert!(to.starts_with("response/"), "{to}");
                prop_assert!(!to.contains(['+', '#', '\0']), "{to}");
                prop_assert!(to.len() <= TOPIC_BYTES && to.matches('/').count() <= TOPIC_SLASHES);
                prop_assert!(!to.split('/').any(str::is_empty), "{to}");
            }
            if request.address.rejected {
                prop_assert!(request.parsed.is_err());
            }
            if let Ok(parsed) = request.parsed {
                let names = [parsed.names.uuid, parsed.names.message_id];
                let names: Vec<&str> = names.into_iter().filter(|name| !name.is_empty()).collect();
                let topic = format!("request/{}/{}", operation.word(), names.join("/"));
                prop_assert_eq!(topic.trim_end_matches('/'), &event.topic);
            }
        }
    }

    #[test]
    fn a_payload_that_is_too_large_is_answered_by_its_token() {
        let payload = format!(r#"{{"token":"t","x":"{}"}}"#, "x".repeat(200 * 1024));
        let (topic, error) = respond(&payload, None);
        assert_eq!(topic, "response/query/t");
        assert_eq!(error, "The payload has 204820 bytes, the limit is 131072");
    }
}
