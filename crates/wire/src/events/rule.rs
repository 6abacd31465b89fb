//! Events of AWS IoT rules: one MQTT message, as selected by [`crate::rules`].

use antumbra_shadow::Timestamp;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use crate::limits::RULE_EVENT_BYTES;
use crate::topic_prefix::TopicPrefix;

/// Value of `clientid()` for a message published over HTTPS.
const NO_CLIENT: &str = "n/a";

/// One MQTT message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleEvent {
    /// The payload; empty if there was none.
    pub payload: Vec<u8>,
    /// The topic, without the deployment's prefix.
    pub topic: String,
    /// The deployment's prefix.
    pub prefix: TopicPrefix,
    /// MQTT client id of the sender; `None` if it was published over HTTPS.
    pub client_id: Option<String>,
    /// MQTT 5 response topic, as received.
    pub response_topic: Option<String>,
    /// MQTT 5 correlation data, in base64 as received.
    pub correlation_data: Option<String>,
    /// Time at which the rule received it.
    pub received: Option<Timestamp>,
    /// MQTT 5 user property `timestamp`: the time that the sender gave the message.
    pub sent: Option<Timestamp>,
}

/// The event does not come from one of the rules. That is a fault of the deployment, and no response is possible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not an event of an AWS IoT rule: {0}")]
pub struct RuleEventError(String);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Selected {
    #[serde(default)]
    payload: String,
    topic: String,
    client_id: Option<String>,
    response_topic: Option<String>,
    correlation_data: Option<String>,
    /// Milliseconds on AWS; the local stack counts in microseconds.
    timestamp: Option<i64>,
    user_timestamp: Option<Vec<String>>,
}

impl RuleEvent {
    /// Decodes the event of an invocation of a deployment with this topic prefix. Unknown fields are ignored.
    pub fn decode(event: &[u8], prefix: &TopicPrefix) -> Result<RuleEvent, RuleEventError> {
        let invalid = |reason: String| RuleEventError(reason);
        if event.len() > RULE_EVENT_BYTES {
            let bytes = event.len();
            return Err(invalid(format!(
                "it has {bytes} bytes, the limit is {RULE_EVENT_BYTES}"
            )));
        }
        let selected: Selected =
            serde_json::from_slice(event).map_err(|error| invalid(error.to_string()))?;
        if selected.topic.is_empty() {
            return Err(invalid("the topic is empty".to_owned()));
        }
        let Some(topic) = prefix.strip(&selected.topic) else {
            let topic = selected.topic;
            return Err(invalid(format!(
                "the topic {topic:?} is not below {prefix}"
            )));
        };
        let payload = STANDARD
            .decode(&selected.payload)
            .map_err(|error| invalid(format!("payload: {error}")))?;
        Ok(RuleEvent {
            payload,
            topic: topic.to_owned(),
            prefix: prefix.clone(),
            client_id: selected.client_id.filter(|id| id != NO_CLIENT),
            response_topic: selected.response_topic,
            correlation_data: selected.correlation_data,
            received: selected
                .timestamp
                .and_then(|time| Timestamp::of_unix(&time.to_string())),
            sent: selected
                .user_timestamp
                .and_then(|values| values.last().and_then(|text| read_time(text))),
        })
    }
}

/// Reads a time as text: RFC 3339, or a number of Unix time.
fn read_time(text: &str) -> Option<Timestamp> {
    Timestamp::parse(text).or_else(|| Timestamp::of_unix(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_selected_fields_are_decoded() {
        let event = br#"{"payload":"AP8=","topic":"request/get/a/b","clientId":"lamp-7",
            "responseTopic":"response/get/x","correlationData":"AQID","timestamp":1700000000123,"userTimestamp":["1700000000"],"later":1}"#;
        let expected = RuleEvent {
            payload: vec![0, 255],
            topic: "request/get/a/b".to_owned(),
            prefix: TopicPrefix::default(),
            client_id: Some("lamp-7".to_owned()),
            response_topic: Some("response/get/x".to_owned()),
            correlation_data: Some("AQID".to_owned()),
            received: Some(Timestamp::from_nanoseconds(1_700_000_000_123_000_000)),
            sent: Some(Timestamp::from_nanoseconds(1_700_000_000_000_000_000)),
        };
        assert_eq!(
            RuleEvent::decode(event, &TopicPrefix::default()),
            Ok(expected)
        );
    }

    #[test]
    fn a_missing_payload_is_empty() {
        for event in [r#"{"topic":"t"}"#, r#"{"topic":"t","payload":""}"#] {
            let decoded = RuleEvent::decode(event.as_bytes(), &TopicPrefix::default()).unwrap();
            assert_eq!(decoded.payload, b"");
            assert_eq!(decoded.topic, "t");
        }
    }

    #[test]
    fn other_events_are_rejected() {
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
            assert!(
                RuleEvent::decode(event.as_bytes(), &TopicPrefix::default()).is_err(),
                "{event}"
            );
        }
        let large = format!(r#"{{"topic":"{}"}}"#, "t".repeat(RULE_EVENT_BYTES));
        assert!(RuleEvent::decode(large.as_bytes(), &TopicPrefix::default()).is_err());
    }
}
