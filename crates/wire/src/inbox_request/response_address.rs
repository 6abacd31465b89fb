//! Addresses of responses. Every request has one, and all of them are below `response/`.

use antumbra_shadow::word_enum;

use super::{RequestError, RequestPayload};
use crate::events::rule::RuleEvent;
use crate::limits::{TOKEN_CHARS, TOPIC_BYTES, TOPIC_SLASHES};
use crate::rules::Operation;
use crate::topic_prefix::TopicPrefix;

/// Prefix of all topics that a response may go to.
const RESPONSE: &str = "response/";

/// Topic and properties of the response to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponseAddress {
    pub topic: String,
    /// MQTT 5 correlation data of the request, in base64 as received.
    pub correlation_data: Option<String>,
    /// Topic to use if AWS IoT rejects `topic`; only if the sender chose that one.
    pub fallback_topic: Option<String>,
    /// The request has no usable address: the response goes to `response/<operation>/rejected`.
    pub rejected: bool,
}

word_enum! {
    /// Tokens that requests may use.
    #[derive(Default)]
    pub enum TokenPolicy as "token policy" {
        /// Private tokens by their client, open tokens by everybody.
        #[default]
        Open = "open",
        /// Private tokens only.
        Private = "private",
    }
}

impl TokenPolicy {
    /// Checks whether a client may use a token, or a level of a response topic. `what` names it in the error.
    fn check(self, client: Option<&str>, token: &str, what: &str) -> Result<(), RequestError> {
        match token.rsplit_once('.') {
            Some((owner, _)) if client != Some(owner) => Err(RequestError::bad(format!(
                "{what} belongs to the client {owner}"
            ))),
            None if self == TokenPolicy::Private => Err(RequestError::bad(format!(
                "{what} is not private: it must be the client id, a dot, and any text"
            ))),
            _ => Ok(()),
        }
    }
}

impl ResponseAddress {
    /// Returns the MQTT 5 response topic, else the topic of the token, else the one for rejected requests. The
    /// result is an error if the request asked for an invalid address, or for none.
    pub(super) fn of(
        event: &RuleEvent,
        operation: Operation,
        payload: Option<&RequestPayload<'_>>,
        tokens: TokenPolicy,
    ) -> (ResponseAddress, Result<(), RequestError>) {
        let client = event.client_id.as_deref();
        let by_token = payload.map_or(Ok(None), |payload| {
            token_topic(operation, payload, client, tokens)
        });
        let address = |topic: String| ResponseAddress {
            topic,
            correlation_data: event.correlation_data.clone(),
            fallback_topic: None,
            rejected: false,
        };
        let rejected = format!("{RESPONSE}{}/rejected", operation.word());
        let chosen = event.response_topic.as_deref();
        let chosen = chosen.map(|topic| check_response_topic(topic, &event.prefix, client, tokens));
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

/// Returns the response topic for the payload's token, if it has one.
fn token_topic(
    operation: Operation,
    payload: &RequestPayload<'_>,
    client: Option<&str>,
    tokens: TokenPolicy,
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
        tokens.check(client, &token, &format!("The token {token}"))?;
        return Ok(Some(format!("{RESPONSE}{}/{token}", operation.word())));
    };
    Err(RequestError::BadRequest(invalid))
}

/// Checks an MQTT 5 response topic. The function publishes to it with its own permissions, not the sender's. Every
/// level with a dot is private, because device policies match several levels; the last level is the token.
fn check_response_topic<'a>(
    topic: &'a str,
    prefix: &TopicPrefix,
    client: Option<&str>,
    tokens: TokenPolicy,
) -> Result<&'a str, RequestError> {
    let (bytes, slashes) = (topic.len(), topic.matches('/').count());
    let forbidden = |c: &char| matches!(c, '+' | '#') || c.is_control();
    let below = prefix
        .strip(topic)
        .filter(|topic| topic.starts_with(RESPONSE));
    let invalid = if bytes > TOPIC_BYTES {
        format!("has {bytes} bytes, the limit is {TOPIC_BYTES}")
    } else if slashes > TOPIC_SLASHES {
        format!("has {slashes} slashes, the limit is {TOPIC_SLASHES}")
    } else if below.is_none() {
        format!("must begin with {prefix}{RESPONSE}")
    } else if let Some(forbidden) = topic.chars().find(forbidden) {
        format!("holds {forbidden:?}, which is not allowed")
    } else if topic.split('/').any(str::is_empty) {
        "has an empty level".to_owned()
    } else {
        let what = "The response topic";
        for level in topic.split('/') {
            TokenPolicy::Open.check(client, level, what)?;
        }
        let token = topic.rsplit('/').next().unwrap_or_default();
        tokens.check(client, token, what)?;
        return Ok(below.unwrap_or(topic));
    };
    Err(RequestError::bad(format!("The response topic {invalid}")))
}

#[cfg(test)]
mod tests {
    use antumbra_testkit::table::cases;
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
        respond_to(None, payload, response_topic)
    }

    #[test]
    fn every_request_has_a_response_address() {
        let table = include_str!("../../testdata/response-topics.txt");
        for [payload, chosen, topic, error] in cases(table) {
            let chosen = Some(chosen.as_str()).filter(|chosen| !chosen.is_empty());
            assert_eq!(
                respond(&payload, chosen),
                (topic, error),
                "{payload} {chosen:?}"
            );
        }
        let long = format!(r#"{{"token":"{}"}}"#, "x".repeat(128));
        assert_eq!(respond(&long, None).1, "");
    }

    /// Topic of the response to a client, and the error.
    fn respond_to(
        client_id: Option<String>,
        payload: &str,
        chosen: Option<&str>,
    ) -> (String, String) {
        let event = RuleEvent {
            client_id,
            ..event(payload, chosen)
        };
        let request = parse(&event, Operation::Query, TokenPolicy::Open);
        let error = request.parsed.err().map(|error| error.to_string());
        (request.address.topic, error.unwrap_or_default())
    }

    #[test]
    fn private_tokens_belong_to_their_client() {
        let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let table = include_str!("../../testdata/private-tokens.txt");
        for [client, payload, chosen, topic, error] in cases(table) {
            let response = respond_to(some(&client), &payload, some(&chosen).as_deref());
            assert_eq!(response, (topic, error), "{client} {payload} {chosen}");
        }
        let token = r#"{"token":"deviceB.1"}"#;
        let rejected = "response/query/rejected";
        // The fallback of a chosen topic is not another client's either.
        let event = RuleEvent {
            client_id: Some("deviceA".to_owned()),
            ..event(token, Some("response/open"))
        };
        let fallback = parse(&event, Operation::Query, TokenPolicy::Open)
            .address
            .fallback_topic;
        assert_eq!(fallback.as_deref(), Some(rejected));
    }

    #[test]
    fn open_tokens_can_be_refused() {
        let not_private = "is not private: it must be the client id, a dot, and any text";
        for (payload, chosen, topic, error) in [
            (
                r#"{"token":"a.1"}"#,
                None,
                "response/query/a.1",
                String::new(),
            ),
            (
                r#"{"token":"t"}"#,
                None,
                "response/query/rejected",
                format!("The token t {not_private}"),
            ),
            ("", Some("response/x/a.1"), "response/x/a.1", String::new()),
            (
                "",
                Some("response/a.1/x"),
                "response/query/rejected",
                format!("The response topic {not_private}"),
            ),
        ] {
            let event = RuleEvent {
                client_id: Some("a".to_owned()),
                ..event(payload, chosen)
            };
            let request = parse(&event, Operation::Query, TokenPolicy::Private);
            assert_eq!(request.address.topic, topic);
            let found = request.parsed.err().map(|error| error.to_string());
            assert_eq!(found.unwrap_or_default(), error);
        }
        assert_eq!("private".parse(), Ok(TokenPolicy::Private));
        assert!("none".parse::<TokenPolicy>().is_err());
    }

    #[test]
    fn correlation_data_is_repeated_and_a_chosen_topic_has_a_fallback() {
        let chosen = event(r#"{"token":"t"}"#, Some("response/a"));
        let address = parse(&chosen, Operation::Query, TokenPolicy::Open).address;
        assert_eq!(address.correlation_data.as_deref(), Some("AQID"));
        assert_eq!(address.fallback_topic.as_deref(), Some("response/query/t"));
        let chosen = event("", Some("response/a"));
        let address = parse(&chosen, Operation::Query, TokenPolicy::Open).address;
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
            let request = parse(&event, operation, TokenPolicy::Open);
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
