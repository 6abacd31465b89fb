//! The reason of a failed message and its route back. Pure.

use std::collections::HashMap;

use antumbra_dynamodb::streams::RecordRange;
use antumbra_notify::UndeliverableNotification;
use aws_sdk_sqs::types::{Message, MessageAttributeValue, MessageSystemAttributeName as System};
use serde_json::Value;

/// A quarantined, undeliverable or dead-lettered message.
pub(super) struct FailedMessage {
    pub(super) id: String,
    pub(super) receipt: String,
    pub(super) body: String,
    pub(super) attributes: HashMap<String, MessageAttributeValue>,
    /// Source queue of a dead letter.
    pub(super) dead_letter_of: Option<String>,
    pub(super) group: Option<String>,
    pub(super) deduplication: Option<String>,
    /// Time when it was sent, in milliseconds since 1970.
    pub(super) sent: i64,
}

/// The route of a message back to its source.
pub(super) enum RedriveRoute {
    /// Send it unchanged to a queue.
    Queue(String),
    /// Send the notification to the target of its registration.
    Registration(UndeliverableNotification),
    /// Read the records again from the stream and pass them to the listener.
    Stream(RecordRange),
    /// A failed MQTT request, which its sender has repeated.
    Request,
    /// No route, with the reason.
    None(&'static str),
}

/// Attributes that the quarantine adds.
const QUARANTINE_ATTRIBUTES: [&str; 3] = ["reason", "source", "detail"];
/// Prefix of a source that is a RabbitMQ queue.
const RABBITMQ: &str = "rabbitmq:";

impl FailedMessage {
    pub(super) fn new(message: Message) -> FailedMessage {
        let system = message.attributes.unwrap_or_default();
        let attribute = |name: &System| system.get(name).cloned();
        FailedMessage {
            dead_letter_of: attribute(&System::DeadLetterQueueSourceArn),
            group: attribute(&System::MessageGroupId),
            deduplication: attribute(&System::MessageDeduplicationId),
            sent: attribute(&System::SentTimestamp)
                .and_then(|milliseconds| milliseconds.parse().ok())
                .unwrap_or_default(),
            id: message.message_id.unwrap_or_default(),
            receipt: message.receipt_handle.unwrap_or_default(),
            body: message.body.unwrap_or_default(),
            attributes: message.message_attributes.unwrap_or_default(),
        }
    }

    fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.get(name)?.string_value()
    }

    /// Tells whether SQS itself can move the message back.
    pub(super) fn is_dead_letter(&self) -> bool {
        self.dead_letter_of.is_some() && !self.is_quarantined()
    }

    fn is_quarantined(&self) -> bool {
        self.attribute("reason").is_some() && self.attribute("source").is_some()
    }

    /// Returns the attributes that the message had when it was first sent.
    pub(super) fn original_attributes(&self) -> HashMap<String, MessageAttributeValue> {
        let mut attributes = self.attributes.clone();
        if self.is_quarantined() {
            attributes.retain(|name, _| !QUARANTINE_ATTRIBUTES.contains(&name.as_str()));
        }
        attributes
    }

    /// Returns the reason of the failure.
    pub(super) fn reason(&self) -> String {
        if let Some(reason) = self.attribute("reason") {
            return reason.to_owned();
        }
        if self.dead_letter_of.is_some() {
            return "dead letter".to_owned();
        }
        let body: Value = serde_json::from_str(&self.body).unwrap_or_default();
        let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str);
        let reason = text("/reason")
            .or(text("/failures/0/errorMessage"))
            .or(text("/responsePayload/errorMessage"))
            .or(text("/requestContext/condition"));
        reason.unwrap_or("unknown").chars().take(100).collect()
    }

    /// Returns the route back. A message of unknown source goes to the given queue.
    pub(super) fn route(&self, to: Option<&str>) -> RedriveRoute {
        if let Some(source) = self.attribute("source").filter(|_| self.is_quarantined()) {
            return match (source.starts_with(RABBITMQ), to) {
                (false, _) => RedriveRoute::Queue(source.to_owned()),
                (true, Some(to)) => RedriveRoute::Queue(to.to_owned()),
                (true, None) => RedriveRoute::None("from RabbitMQ; use --to antumbra-signals"),
            };
        }
        if let Some(queue) = &self.dead_letter_of {
            return RedriveRoute::Queue(queue.clone());
        }
        if let Some(range) = RecordRange::parse(&self.body) {
            return RedriveRoute::Stream(range);
        }
        if let Some(notification) = UndeliverableNotification::parse(&self.body) {
            return match notification.is_complete() {
                true => RedriveRoute::Registration(notification),
                false => RedriveRoute::None(
                    "no notification was stored; the table has the current state",
                ),
            };
        }
        let body: Value = serde_json::from_str(&self.body).unwrap_or_default();
        let is_rule = body["ruleName"].is_string() && body["failures"].is_array();
        let is_call = body["requestContext"].is_object() && body.get("requestPayload").is_some();
        if is_rule || is_call {
            return RedriveRoute::Request;
        }
        match to {
            Some(to) => RedriveRoute::Queue(to.to_owned()),
            None => RedriveRoute::None("unknown source; use --to QUEUE"),
        }
    }
}

impl RedriveRoute {
    pub(super) fn describe(&self) -> String {
        match self {
            RedriveRoute::Queue(queue) => {
                let name = queue.rsplit(['/', ':']).next().unwrap_or(queue);
                format!("to {name}")
            }
            RedriveRoute::Registration(notification) => {
                let name = notification.registration.as_deref().unwrap_or_default();
                format!("to the target of {name}")
            }
            RedriveRoute::Stream(range) => format!("{} records from the stream", range.batch_size),
            RedriveRoute::Request => "failed MQTT request".to_owned(),
            RedriveRoute::None(reason) => (*reason).to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(
        body: &str,
        attributes: &[(&str, &str)],
        dead_letter_of: Option<&str>,
    ) -> FailedMessage {
        let value = |text: &str| {
            let value = MessageAttributeValue::builder().data_type("String");
            value.string_value(text).build().unwrap()
        };
        let attributes = attributes.iter();
        FailedMessage {
            id: "m".to_owned(),
            receipt: "r".to_owned(),
            body: body.to_owned(),
            attributes: attributes
                .map(|(name, text)| ((*name).to_owned(), value(text)))
                .collect(),
            dead_letter_of: dead_letter_of.map(str::to_owned),
            group: None,
            deduplication: None,
            sent: 0,
        }
    }

    #[test]
    fn every_kind_of_message_has_a_route_and_a_reason() {
        let inbound = "arn:aws:sqs:us-east-1:000000000000:antumbra-inbound";
        let quarantined = [("reason", "NotJson"), ("source", inbound), ("mine", "1")];
        let batch = r#"{"requestContext":{"condition":"RetryAttemptsExhausted"},"DDBStreamBatchInfo":{"shardId":"s",
            "startSequenceNumber":"1","endSequenceNumber":"3","batchSize":3,"streamArn":"a"}}"#;
        let notification = r#"{"reason":"QueueDoesNotExist","registration":"all","key":"k","record":{},
            "notification":{},"message":{"id":"n"}}"#;
        let short =
            r#"{"reason":"too large","registration":"all","record":{"sequenceNumber":"1"}}"#;
        let rule = r#"{"ruleName":"antumbra_message_get","failures":[{"errorMessage":"denied"}]}"#;
        let call = r#"{"requestContext":{"condition":"EventAgeExceeded"},"requestPayload":{}}"#;
        for (message, reason, route) in [
            (
                message("{", &quarantined, None),
                "NotJson",
                "to antumbra-inbound",
            ),
            // A dead letter goes to its source queue, also if it was quarantined before.
            (
                message("{", &[], Some(inbound)),
                "dead letter",
                "to antumbra-inbound",
            ),
            (
                message(batch, &[], None),
                "RetryAttemptsExhausted",
                "3 records from the stream",
            ),
            (
                message(notification, &[], None),
                "QueueDoesNotExist",
                "to the target of all",
            ),
            (
                message(short, &[], None),
                "too large",
                "no notification was stored; the table has the current state",
            ),
            (message(rule, &[], None), "denied", "failed MQTT request"),
            (
                message(call, &[], None),
                "EventAgeExceeded",
                "failed MQTT request",
            ),
            (
                message(
                    "?",
                    &[("reason", "NotText"), ("source", "rabbitmq:q")],
                    None,
                ),
                "NotText",
                "from RabbitMQ; use --to antumbra-signals",
            ),
            (
                message("?", &[], None),
                "unknown",
                "unknown source; use --to QUEUE",
            ),
        ] {
            assert_eq!(message.reason(), reason);
            assert_eq!(message.route(None).describe(), route);
        }
        let unknown = message(
            "?",
            &[("reason", "NotText"), ("source", "rabbitmq:q")],
            None,
        );
        assert_eq!(
            unknown.route(Some("antumbra-signals")).describe(),
            "to antumbra-signals"
        );
        let back = message("{", &quarantined, None).original_attributes();
        assert_eq!(back.keys().collect::<Vec<_>>(), ["mine"]);
    }
}
