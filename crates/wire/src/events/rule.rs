//! What a rule of AWS IoT Core hands to a function: one MQTT message, as [`crate::rules`] selects it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use crate::limits::RULE_EVENT_BYTES;

/// What `clientid()` says of a message that came over HTTPS.
const NO_CLIENT: &str = "n/a";

/// One MQTT message.
///
/// ```
/// use antumbra_wire::events::rule::RuleEvent;
/// let event = br#"{"payload":"eyJ0b2tlbiI6InQifQ==","topic":"request/query/lamp-7","clientId":"n/a"}"#;
/// let event = RuleEvent::decode(event).unwrap();
/// assert_eq!(event.payload, br#"{"token":"t"}"#);
/// assert_eq!(event.client_id, None);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleEvent {
    /// What it held, whatever that was; nothing if it held nothing.
    pub payload: Vec<u8>,
    /// Where it was published.
    pub topic: String,
    /// Who sent it over MQTT; nobody if it came over HTTPS.
    pub client_id: Option<String>,
    /// MQTT 5: where the sender wants its answer.
    pub response_topic: Option<String>,
    /// MQTT 5: what the answer is to repeat, in base64 as it came.
    pub correlation_data: Option<String>,
    /// When the rule saw it, in milliseconds since 1970.
    pub timestamp_milliseconds: Option<u64>,
}

/// An event that no rule of ours made: the deployment's fault, nobody can be answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not the event of a rule: {0}")]
pub struct RuleEventError(String);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Selected {
    #[serde(default)]
    payload: String,
    topic: String,
    #[serde(default)]
    client_id: Option<String>,
    #[serde(default)]
    response_topic: Option<String>,
    #[serde(default)]
    correlation_data: Option<String>,
    #[serde(default)]
    timestamp: Option<u64>,
}

impl RuleEvent {
    /// Reads the bytes of an invocation. Fields of a later rule are passed over.
    pub fn decode(event: &[u8]) -> Result<RuleEvent, RuleEventError> {
        let no = |reason: String| RuleEventError(reason);
        if event.len() > RULE_EVENT_BYTES {
            let bytes = event.len();
            return Err(no(format!(
                "it has {bytes} bytes, the limit is {RULE_EVENT_BYTES}"
            )));
        }
        let selected: Selected =
            serde_json::from_slice(event).map_err(|fault| no(fault.to_string()))?;
        if selected.topic.is_empty() {
            return Err(no("the topic is empty".to_owned()));
        }
        let payload = STANDARD
            .decode(&selected.payload)
            .map_err(|fault| no(format!("payload: {fault}")))?;
        Ok(RuleEvent {
            payload,
            topic: selected.topic,
            client_id: selected.client_id.filter(|id| id != NO_CLIENT),
            response_topic: selected.response_topic,
            correlation_data: selected.correlation_data,
            timestamp_milliseconds: selected.timestamp,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_a_rule_selects_is_read() {
        let event = br#"{"payload":"AP8=","topic":"request/get/a/b","clientId":"lamp-7",
            "responseTopic":"response/get/x","correlationData":"AQID","timestamp":1700000000123,"later":1}"#;
        let expected = RuleEvent {
            payload: vec![0, 255],
            topic: "request/get/a/b".to_owned(),
            client_id: Some("lamp-7".to_owned()),
            response_topic: Some("response/get/x".to_owned()),
            correlation_data: Some("AQID".to_owned()),
            timestamp_milliseconds: Some(1_700_000_000_123),
        };
        assert_eq!(RuleEvent::decode(event), Ok(expected));
    }

    #[test]
    fn nothing_is_a_payload_too() {
        for event in [r#"{"topic":"t"}"#, r#"{"topic":"t","payload":""}"#] {
            let decoded = RuleEvent::decode(event.as_bytes()).unwrap();
            assert_eq!(decoded.payload, b"");
            assert_eq!(decoded.topic, "t");
        }
    }

    #[test]
    fn what_no_rule_made_is_refused() {
        for event in [
            "",
            "null",
            "[]",
            r#"{"payload":"AP8="}"#,
            r#"{"topic":""}"#,
            r#"{"topic":7}"#,
            r#"{"topic":"t","payload":{"token":"t"}}"#,
            r#"{"topic":"t","payload":"not base64!"}"#,
            r#"{"topic":"t","responseTopic":7}"#,
            r#"{"topic":"t","timestamp":"yesterday"}"#,
            r#"{"topic":"t","topic":"u"}"#,
            r#"{"topic":"t"} more"#,
        ] {
            assert!(RuleEvent::decode(event.as_bytes()).is_err(), "{event}");
        }
        let large = format!(r#"{{"topic":"{}"}}"#, "t".repeat(RULE_EVENT_BYTES));
        assert!(RuleEvent::decode(large.as_bytes()).is_err());
    }
}
