//! The result of a rule for a message: the JSON event that the function receives. Pure.
//!
//! All rules share one `SELECT` ([`antumbra_wire::rules`]); its seven expressions are evaluated here.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Serialize;

use crate::mqtt::Message;

/// Result of `clientid()` for a message that no MQTT client sent.
const NO_CLIENT: &str = "n/a";

/// Undefined values are left out.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Event<'a> {
    payload: String,
    topic: &'a str,
    client_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_topic: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    correlation_data: Option<String>,
    timestamp: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    user_timestamp: Vec<&'a str>,
}

pub(super) fn select(message: &Message, timestamp: u64) -> String {
    let properties = &message.properties;
    let user = properties.user.iter();
    let user_timestamp = user.filter(|(name, _)| name == "timestamp");
    let correlation_data = properties.correlation_data.as_ref();
    let event = Event {
        payload: STANDARD.encode(&message.payload),
        topic: &message.topic,
        client_id: message.client_id.as_deref().unwrap_or(NO_CLIENT),
        response_topic: properties.response_topic.as_deref(),
        correlation_data: correlation_data.map(|bytes| STANDARD.encode(bytes)),
        timestamp,
        user_timestamp: user_timestamp.map(|(_, value)| value.as_str()).collect(),
    };
    // Strings and a number always have a JSON form.
    serde_json::to_string(&event).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use antumbra_shadow::Timestamp;
    use antumbra_wire::events::rule::RuleEvent;
    use antumbra_wire::rules::{SELECT, deployed_rules};
    use antumbra_wire::topic_prefix::TopicPrefix;
    use bytes::Bytes;
    use serde_json::{Value, json};

    use super::*;
    use crate::mqtt::{Properties, TopicFilter};

    #[test]
    fn the_event_is_what_the_functions_read() {
        let message = Message {
            topic: "request/get/a/b".to_owned(),
            payload: Bytes::from_static(&[0, 255, b'"']),
            client_id: Some("lamp-7".to_owned()),
            properties: Properties {
                response_topic: Some("response/get/x".to_owned()),
                correlation_data: Some(Bytes::from_static(&[1, 2, 3])),
                user: vec![("timestamp".to_owned(), "2026-01-31T12:00:00Z".to_owned())],
                ..Properties::default()
            },
            ..Message::default()
        };
        let event = select(&message, 1_700_000_000_123_456);
        let event = RuleEvent::decode(event.as_bytes(), &TopicPrefix::default()).unwrap();
        let expected = RuleEvent {
            payload: vec![0, 255, b'"'],
            topic: "request/get/a/b".to_owned(),
            prefix: TopicPrefix::default(),
            client_id: Some("lamp-7".to_owned()),
            response_topic: Some("response/get/x".to_owned()),
            correlation_data: Some("AQID".to_owned()),
            received: Some(Timestamp::from_nanoseconds(1_700_000_000_123_456_000)),
            sent: Timestamp::parse("2026-01-31T12:00:00Z"),
        };
        assert_eq!(event, expected);
    }

    #[test]
    fn the_event_has_the_members_of_the_select_clause() {
        let message = Message {
            properties: Properties {
                response_topic: Some("r".to_owned()),
                correlation_data: Some(Bytes::new()),
                user: vec![("timestamp".to_owned(), "1".to_owned())],
                ..Properties::default()
            },
            ..Message::new("t", "{}")
        };
        let event: Value = serde_json::from_str(&select(&message, 7)).unwrap();
        let members = event.as_object().unwrap().keys();
        let mut members: Vec<&str> = members.map(String::as_str).collect();
        members.sort_unstable();
        let clause = SELECT.strip_prefix("SELECT ").unwrap();
        let expressions = clause.split(" AS ").skip(1);
        let mut names: Vec<&str> = expressions
            .map(|rest| rest.split([',', ' ']).next().unwrap())
            .collect();
        names.sort_unstable();
        assert_eq!(members, names);
    }

    #[test]
    fn undefined_values_are_left_out() {
        let event = select(&Message::new("request/query/a", "{}"), 7);
        let event: Value = serde_json::from_str(&event).unwrap();
        let expected = json!({
            "payload": "e30=", "topic": "request/query/a", "clientId": "n/a", "timestamp": 7,
        });
        assert_eq!(event, expected);
    }

    /// The rules that select a topic, without the prefix of their names.
    fn rules_for(topic: &str) -> Vec<&'static str> {
        let selects = |filter: &str| TopicFilter::new(filter).unwrap().matches(topic);
        deployed_rules()
            .filter(|rule| selects(rule.filter))
            .map(|rule| rule.name.strip_prefix("antumbra_").unwrap())
            .collect()
    }

    #[test]
    fn a_topic_is_selected_by_the_rule_of_its_operation_alone() {
        for (topic, rule) in [
            ("request/query/lamp", "message_query"),
            ("request/get/lamp/1564669331-1-a", "message_get"),
            ("request/get/lamp", "message_get"),
            ("request/get/victim/x/y/z", "message_get"),
            ("request/get/", "message_get"),
            ("request/next/lamp/0", "message_next"),
            ("request/prev/lamp/0", "message_prev"),
            ("request/list/lamp", "message_list"),
            ("request/delete/lamp/1", "message_delete"),
            ("request/send/lamp", "message_send"),
            ("request/devices", "message_devices"),
            ("shadow/lamp/get", "shadow_get"),
            ("shadow/lamp/update", "shadow_update"),
            ("shadow/lamp/delete", "shadow_delete"),
            ("shadow/lamp/name/light/get", "shadow_named_get"),
            ("shadow/lamp/name/light/update", "shadow_named_update"),
            ("shadow/lamp/name/light/delete", "shadow_named_delete"),
            ("shadow/name/name/name/get", "shadow_named_get"),
        ] {
            assert_eq!(rules_for(topic), [rule], "{topic}");
        }
        for topic in [
            "request",
            "request/get",
            "request/devices/lamp",
            "request/steal/lamp",
            "Request/get/lamp",
            "/request/get/lamp",
            "response/get/lamp.7",
            "shadow/lamp",
            "shadow/lamp/get/accepted",
            "shadow/lamp/update/delta",
            "shadow/lamp/x/get",
            "shadow/lamp/name/get",
            "shadow/lamp/name/light/get/accepted",
            "notification/lamp",
            "$aws/things/lamp/shadow/get",
        ] {
            assert!(rules_for(topic).is_empty(), "{topic}");
        }
    }
}
