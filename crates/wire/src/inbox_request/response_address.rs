//! Where an answer goes: always somewhere, and never anywhere but below `response/`.

use super::{Operation, RequestError, RequestPayload};
use crate::events::rule::RuleEvent;
use crate::limits::{TOKEN_CHARS, TOPIC_BYTES, TOPIC_SLASHES};

/// Below this lie all topics that an answer may go to.
const RESPONSE: &str = "response/";

/// Where the one answer to a request goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponseAddress {
    /// The topic.
    pub topic: String,
    /// MQTT 5: what the answer repeats, in base64 as it came.
    pub correlation_data: Option<String>,
    /// Where else, if nothing may be published there: for a topic that the sender chose.
    pub otherwise: Option<String>,
    /// Whether the request did not say where to, so that it is answered for whoever looks after them.
    pub rejected: bool,
}

impl ResponseAddress {
    /// The response topic of MQTT 5, else that of the token, else the one for rejected requests; and
    /// what was wrong if it is not the one that the request wanted.
    pub(super) fn of(
        event: &RuleEvent,
        operation: Operation,
        members: Option<&RequestPayload<'_>>,
    ) -> (ResponseAddress, Result<(), RequestError>) {
        let by_token = members.map_or(Ok(None), |members| by_token(operation, members));
        let address = |topic: String| ResponseAddress {
            topic,
            correlation_data: event.correlation_data.clone(),
            otherwise: None,
            rejected: false,
        };
        let rejected = format!("{RESPONSE}{}/rejected", operation.word());
        let chosen = event.response_topic.as_deref().map(check);
        match (chosen, by_token) {
            (Some(Ok(topic)), by_token) => {
                let address = ResponseAddress {
                    otherwise: Some(by_token.ok().flatten().unwrap_or(rejected)),
                    ..address(topic.to_owned())
                };
                (address, Ok(()))
            }
            (Some(Err(fault)), Ok(Some(topic))) => (address(topic), Err(fault)),
            (None, Ok(Some(topic))) => (address(topic), Ok(())),
            (chosen, by_token) => {
                let address = ResponseAddress {
                    rejected: true,
                    ..address(rejected)
                };
                let missing = RequestError::bad("There is no token");
                let fault = match (chosen, by_token) {
                    (Some(Err(fault)), _) | (_, Err(fault)) => fault,
                    _ => missing,
                };
                // A payload that could not be read says more than that it has no token.
                let result = members.map_or(Ok(()), |_| Err(fault));
                (address, result)
            }
        }
    }
}

fn by_token(
    operation: Operation,
    members: &RequestPayload<'_>,
) -> Result<Option<String>, RequestError> {
    let Some(token) = members.token()? else {
        return Ok(None);
    };
    let safe = |c: char| c.is_ascii_graphic() && !matches!(c, '/' | '+' | '#' | '$');
    if token.is_empty() {
        Err(RequestError::bad("The token is empty"))
    } else if let Some(unsafe_one) = token.chars().find(|&c| !safe(c)) {
        let told = format!("The token holds {unsafe_one:?}, which is not allowed");
        Err(RequestError::bad(told))
    } else if token.len() > TOKEN_CHARS {
        let chars = token.len();
        let told = format!("The token has {chars} characters, the limit is {TOKEN_CHARS}");
        Err(RequestError::bad(told))
    } else {
        Ok(Some(format!("{RESPONSE}{}/{token}", operation.word())))
    }
}

/// A topic that the sender chose, which we publish to with our rights, not with its own.
fn check(topic: &str) -> Result<&str, RequestError> {
    let wrong = |what: String| Err(RequestError::bad(format!("The response topic {what}")));
    let slashes = topic.matches('/').count();
    let unfit = |c: &char| matches!(c, '+' | '#') || c.is_control();
    if topic.len() > TOPIC_BYTES {
        wrong(format!(
            "has {} bytes, the limit is {TOPIC_BYTES}",
            topic.len()
        ))
    } else if slashes > TOPIC_SLASHES {
        wrong(format!(
            "has {slashes} slashes, the limit is {TOPIC_SLASHES}"
        ))
    } else if !topic.starts_with(RESPONSE) {
        wrong(format!("must begin with {RESPONSE}"))
    } else if let Some(unfit) = topic.chars().find(unfit) {
        wrong(format!("holds {unfit:?}, which is not allowed"))
    } else if topic.split('/').any(str::is_empty) {
        wrong("has an empty level".to_owned())
    } else {
        Ok(topic)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::read;
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

    /// Where the answer goes, and what is wrong with the request.
    fn answered(payload: &str, response_topic: Option<&str>) -> (String, String) {
        let event = event(payload, response_topic);
        let request = read(&event, Operation::Query);
        let told = request.asked.err().map(|fault| fault.to_string());
        (request.address.topic, told.unwrap_or_default())
    }

    #[test]
    fn every_request_is_answered_somewhere() {
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
        for (payload, chosen, topic, told) in cases {
            let expected = ((*topic).to_owned(), (*told).to_owned());
            assert_eq!(answered(payload, *chosen), expected, "{payload} {chosen:?}");
        }
        assert_eq!(answered(&long, None).1, "");
    }

    #[test]
    fn what_the_sender_gave_is_repeated_and_there_is_a_second_way() {
        let chosen = event(r#"{"token":"t"}"#, Some("response/a"));
        let address = read(&chosen, Operation::Query).address;
        assert_eq!(address.correlation_data.as_deref(), Some("AQID"));
        assert_eq!(address.otherwise.as_deref(), Some("response/query/t"));
        let chosen = event("", Some("response/a"));
        let address = read(&chosen, Operation::Query).address;
        let rejected = Some("response/query/rejected");
        assert_eq!(address.otherwise.as_deref(), rejected);
        assert!(!address.rejected);
    }

    proptest! {
        /// Whatever comes, there is an answer, and it goes nowhere but below `response/`.
        #[test]
        fn nothing_leads_out_of_the_responses(
            topic in "(request|/|get|query|[a-z+#$/]){0,6}",
            token in proptest::option::of(r#"[ -~é/+#$]{0,140}"#),
            nonsense in proptest::option::of(any::<Vec<u8>>()),
            response_topic in proptest::option::of(
                prop_oneof!["(response|/|[a-z+#$/]|\\PC){0,12}", "response/[ -~]{0,260}"]
            ),
            operation in proptest::sample::select(Operation::ALL.to_vec()),
        ) {
            let said = token.map_or(serde_json::json!({}), |token| serde_json::json!({"token": token}));
            let event = RuleEvent {
                payload: nonsense.unwrap_or_else(|| said.to_string().into_bytes()),
                topic,
                response_topic,
                ..RuleEvent::default()
            };
            let request = read(&event, operation);
            let otherwise = request.address.otherwise.iter();
            for to in otherwise.chain([&request.address.topic]) {
                prop_assert!(to.starts_with("response/"), "{to}");
                prop_assert!(!to.contains(['+', '#', '\0']), "{to}");
                prop_assert!(to.len() <= TOPIC_BYTES && to.matches('/').count() <= TOPIC_SLASHES);
                prop_assert!(!to.split('/').any(str::is_empty), "{to}");
            }
            if request.address.rejected {
                prop_assert!(request.asked.is_err());
            }
            if let Ok(asked) = request.asked {
                let named = [asked.named.uuid, asked.named.message_id];
                let names: Vec<&str> = named.into_iter().filter(|name| !name.is_empty()).collect();
                let topic = format!("request/{}/{}", operation.word(), names.join("/"));
                prop_assert_eq!(topic.trim_end_matches('/'), &event.topic);
            }
        }
    }

    #[test]
    fn too_large_a_payload_is_answered_by_its_token() {
        let payload = format!(r#"{{"token":"t","x":"{}"}}"#, "x".repeat(200 * 1024));
        let (topic, told) = answered(&payload, None);
        assert_eq!(topic, "response/query/t");
        assert_eq!(told, "The payload has 204820 bytes, the limit is 131072");
    }
}
