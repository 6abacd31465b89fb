//! What a message that was put aside is, and the way back for it. Pure.

use std::collections::HashMap;

use antumbra_local::stream::Range;
use antumbra_notify::UndeliverableNotification;
use aws_sdk_sqs::types::{Message, MessageAttributeValue, MessageSystemAttributeName as System};
use serde_json::Value;

/// A message that lies there.
pub(super) struct FailedMessage {
    pub(super) id: String,
    pub(super) receipt: String,
    pub(super) body: String,
    pub(super) attributes: HashMap<String, MessageAttributeValue>,
    /// The queue whose dead letter it is.
    pub(super) dead_letter_of: Option<String>,
    pub(super) group: Option<String>,
    pub(super) deduplication: Option<String>,
    /// When it was sent, in milliseconds since 1970.
    pub(super) sent: i64,
}

/// The way back.
pub(super) enum RedriveRoute {
    /// To a queue, as it is.
    Queue(String),
    /// To wherever its registration says.
    Registration(UndeliverableNotification),
    /// From the stream, through the listener.
    Stream(Range),
    /// A request over MQTT: there is none.
    Request,
    /// None is known.
    None(&'static str),
}

/// Attributes that the quarantine added.
const ADDED: [&str; 3] = ["reason", "source", "detail"];
/// What a source that is a queue of RabbitMQ begins with.
const RABBITMQ: &str = "rabbitmq:";

impl FailedMessage {
    pub(super) fn of(message: Message) -> FailedMessage {
        let system = message.attributes.unwrap_or_default();
        let said = |name: &System| system.get(name).cloned();
        FailedMessage {
            dead_letter_of: said(&System::DeadLetterQueueSourceArn),
            group: said(&System::MessageGroupId),
            deduplication: said(&System::MessageDeduplicationId),
            sent: said(&System::SentTimestamp)
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

    /// Whether SQS itself knows the way back.
    pub(super) fn is_dead_letter(&self) -> bool {
        self.dead_letter_of.is_some() && !self.is_quarantined()
    }

    fn is_quarantined(&self) -> bool {
        self.attribute("reason").is_some() && self.attribute("source").is_some()
    }

    /// What it had when it was first sent.
    pub(super) fn own_attributes(&self) -> HashMap<String, MessageAttributeValue> {
        let mut attributes = self.attributes.clone();
        if self.is_quarantined() {
            attributes.retain(|name, _| !ADDED.contains(&name.as_str()));
        }
        attributes
    }

    /// Why it lies there, in a few words.
    pub(super) fn reason(&self) -> String {
        if let Some(reason) = self.attribute("reason") {
            return reason.to_owned();
        }
        if self.dead_letter_of.is_some() {
            return "dead letter".to_owned();
        }
        let body: Value = serde_json::from_str(&self.body).unwrap_or_default();
        let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str);
        let said = text("/reason")
            .or(text("/failures/0/errorMessage"))
            .or(text("/responsePayload/errorMessage"))
            .or(text("/requestContext/condition"));
        said.unwrap_or("unknown").chars().take(100).collect()
    }

    /// The way back; what does not say where it came from goes to the given queue.
    pub(super) fn way(&self, to: Option<&str>) -> RedriveRoute {
        if let Some(source) = self.attribute("source").filter(|_| self.is_quarantined()) {
            // A queue of SQS that the same function reads.
            return match (source.starts_with(RABBITMQ), to) {
                (false, _) => RedriveRoute::Queue(source.to_owned()),
                (true, Some(to)) => RedriveRoute::Queue(to.to_owned()),
                (true, None) => {
                    RedriveRoute::None("it came from RabbitMQ: say --to antumbra-signals")
                }
            };
        }
        if let Some(queue) = &self.dead_letter_of {
            return RedriveRoute::Queue(queue.clone());
        }
        if let Some(range) = Range::read(&self.body) {
            return RedriveRoute::Stream(range);
        }
        if let Some(parked) = UndeliverableNotification::read(&self.body) {
            return match parked.is_whole() {
                true => RedriveRoute::Registration(parked),
                false => {
                    RedriveRoute::None("it holds no notification: what changed is in the table")
                }
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
            None => RedriveRoute::None("it does not say where it came from: say --to QUEUE"),
        }
    }
}

impl RedriveRoute {
    /// In a few words.
    pub(super) fn words(&self) -> String {
        match self {
            RedriveRoute::Queue(queue) => {
                let name = queue.rsplit(['/', ':']).next().unwrap_or(queue);
                format!("to {name}")
            }
            RedriveRoute::Registration(parked) => {
                let name = parked.registration.as_deref().unwrap_or_default();
                format!("to the target of {name}")
            }
            RedriveRoute::Stream(range) => format!("{} records from the stream", range.batch_size),
            RedriveRoute::Request => "a request that came to nothing".to_owned(),
            RedriveRoute::None(why) => (*why).to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lying(
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
    fn each_kind_has_its_way_and_its_reason() {
        let inbound = "arn:aws:sqs:us-east-1:000000000000:antumbra-inbound";
        let quarantined = [("reason", "NotJson"), ("source", inbound), ("mine", "1")];
        let told = r#"{"requestContext":{"condition":"RetryAttemptsExhausted"},"DDBStreamBatchInfo":{"shardId":"s",
            "startSequenceNumber":"1","endSequenceNumber":"3","batchSize":3,"streamArn":"a"}}"#;
        let parked = r#"{"reason":"QueueDoesNotExist","registration":"all","key":"k","record":{},
            "notification":{},"message":{"id":"n"}}"#;
        let short =
            r#"{"reason":"too large","registration":"all","record":{"sequenceNumber":"1"}}"#;
        let rule = r#"{"ruleName":"antumbra_message_get","failures":[{"errorMessage":"denied"}]}"#;
        let call = r#"{"requestContext":{"condition":"EventAgeExceeded"},"requestPayload":{}}"#;
        for (lying, reason, words) in [
            (
                lying("{", &quarantined, None),
                "NotJson",
                "to antumbra-inbound",
            ),
            // What was quarantined once and is now a dead letter goes where it last was.
            (
                lying("{", &[], Some(inbound)),
                "dead letter",
                "to antumbra-inbound",
            ),
            (
                lying(told, &[], None),
                "RetryAttemptsExhausted",
                "3 records from the stream",
            ),
            (
                lying(parked, &[], None),
                "QueueDoesNotExist",
                "to the target of all",
            ),
            (
                lying(short, &[], None),
                "too large",
                "it holds no notification: what changed is in the table",
            ),
            (
                lying(rule, &[], None),
                "denied",
                "a request that came to nothing",
            ),
            (
                lying(call, &[], None),
                "EventAgeExceeded",
                "a request that came to nothing",
            ),
            (
                lying(
                    "?",
                    &[("reason", "NotText"), ("source", "rabbitmq:q")],
                    None,
                ),
                "NotText",
                "it came from RabbitMQ: say --to antumbra-signals",
            ),
            (
                lying("?", &[], None),
                "unknown",
                "it does not say where it came from: say --to QUEUE",
            ),
        ] {
            assert_eq!(lying.reason(), reason);
            assert_eq!(lying.way(None).words(), words);
        }
        let unknown = lying(
            "?",
            &[("reason", "NotText"), ("source", "rabbitmq:q")],
            None,
        );
        assert_eq!(
            unknown.way(Some("antumbra-signals")).words(),
            "to antumbra-signals"
        );
        let back = lying("{", &quarantined, None).own_attributes();
        assert_eq!(back.keys().collect::<Vec<_>>(), ["mine"]);
    }
}
