//! The reason of a failed message and its route back to its source. Pure.

use std::fmt;

use antumbra_service::deliveries::DeliveryMessage;
use antumbra_service::redrive::{Attribute, FailedMessage, RecordRange};
use antumbra_wire::events::rule::RuleEvent;
use antumbra_wire::events::sqs::Origin;
use antumbra_wire::topic_prefix::TopicPrefix;
use serde_json::Value;

use super::RedriveOptions;
use crate::StoredNotification;

#[derive(Debug)]
pub enum RedriveRoute {
    /// Send it unchanged to a queue.
    Queue(String),
    /// Send the notification to the target of its registration.
    Registration(StoredNotification),
    /// Read the records again from the stream and pass them to the listener.
    Stream(RecordRange),
    /// Make the update of a shadow in this event of a rule.
    Update(String),
    /// Begin another round of a webhook delivery.
    Delivery(DeliveryMessage),
    /// A failed MQTT request, which its sender has repeated.
    Request,
    /// No route, with the reason.
    None(&'static str),
}

/// Attributes that the quarantine adds.
const QUARANTINE_ATTRIBUTES: [&str; 3] = ["reason", "source", "detail"];
/// Prefix of a source that is a RabbitMQ queue.
const RABBITMQ: &str = "rabbitmq:";

/// End of the name of the function that makes updates over MQTT.
const SHADOW_REQUESTS: &str = "-shadow-requests";

/// Returns the name of a queue that is given by name, URL or ARN.
fn name_of(queue: &str) -> &str {
    queue.rsplit(['/', ':']).next().unwrap_or(queue)
}

fn is_same(queue: &str, other: &str) -> bool {
    name_of(queue) == name_of(other)
}

/// Returns whether a function quarantined the message. The attributes of a dead letter are those of its sender.
fn is_quarantined(message: &FailedMessage) -> bool {
    message.dead_letter_of.is_none() && message.attribute("reason").is_some()
}

/// Returns the message as it was first sent, with its origin.
pub(super) fn restored(message: &FailedMessage) -> FailedMessage {
    let mut message = message.clone();
    let origin = message.attribute(Origin::ATTRIBUTE);
    if origin.and_then(Origin::parse).is_none() {
        let origin = Origin {
            id: message.id.clone(),
            sent_milliseconds: message.sent_milliseconds,
        };
        let attribute = Attribute::text(origin.to_string());
        message
            .attributes
            .insert(Origin::ATTRIBUTE.to_owned(), attribute);
    }
    if is_quarantined(&message) {
        let added = |name: &String| QUARANTINE_ATTRIBUTES.contains(&name.as_str());
        message.attributes.retain(|name, _| !added(name));
    }
    message
}

/// Returns the event of an update over MQTT that failed: Lambda sends a record of the invocation to the function's
/// failure destination. Other requests are repeated by their senders.
fn failed_update(body: &Value) -> Option<String> {
    let arn = body.pointer("/requestContext/functionArn")?.as_str()?;
    let ["arn", _, "lambda", _, _, "function", name, ..] = arn.split(':').collect::<Vec<_>>()[..]
    else {
        return None;
    };
    let event = body.get("requestPayload")?;
    let is_update = event["topic"].as_str()?.ends_with("/update");
    (is_update && format!("-{name}").ends_with(SHADOW_REQUESTS)).then(|| event.to_string())
}

/// Returns whether an event has a time, by which it is older than what was reported since.
fn has_time(event: &str) -> bool {
    // The topic does not matter here.
    let event = RuleEvent::decode(event.as_bytes(), &TopicPrefix::default());
    event.is_ok_and(|event| event.received.is_some())
}

pub fn reason(message: &FailedMessage) -> String {
    if message.dead_letter_of.is_some() {
        return "dead letter".to_owned();
    }
    if let Some(reason) = message.attribute("reason") {
        return reason.to_owned();
    }
    let body: Value = serde_json::from_str(&message.body).unwrap_or_default();
    let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str);
    let reason = text("/reason")
        .or(text("/failures/0/errorMessage"))
        .or(text("/responsePayload/errorMessage"))
        .or(text("/requestContext/condition"));
    reason.unwrap_or("unknown").chars().take(100).collect()
}

impl RedriveRoute {
    pub fn of(message: &FailedMessage, options: &RedriveOptions) -> RedriveRoute {
        if options.holds_deliveries
            && let Ok(letter) = DeliveryMessage::decode(&message.body)
        {
            return RedriveRoute::Delivery(letter);
        }
        if let Some(source) = &message.dead_letter_of {
            let mut known = options.sources.iter().chain(&options.to);
            let known = known.find(|known| is_same(known, source)).unwrap_or(source);
            return RedriveRoute::Queue(known.clone());
        }
        let to = options.to.clone().map(RedriveRoute::Queue);
        let unknown = || RedriveRoute::None("unknown source; name a queue with `to`");
        if is_quarantined(message) {
            let source = message.attribute("source").unwrap_or_default();
            if source.starts_with(RABBITMQ) {
                return to.unwrap_or(RedriveRoute::None(
                    "from RabbitMQ; name the signals queue with `to`",
                ));
            }
            // The body is a sender's, whatever it looks like.
            let mut known = options.sources.iter();
            let known = known.find(|known| is_same(known, source));
            let known = known.cloned().map(RedriveRoute::Queue);
            return known.or(to).unwrap_or_else(unknown);
        }
        if let Some(range) = RecordRange::parse(&message.body) {
            return RedriveRoute::Stream(range);
        }
        if let Some(notification) = StoredNotification::parse(&message.body) {
            return match notification.is_complete() {
                true => RedriveRoute::Registration(notification),
                false => RedriveRoute::None(
                    "no notification was stored; the table has the current state",
                ),
            };
        }
        let body: Value = serde_json::from_str(&message.body).unwrap_or_default();
        if let Some(event) = failed_update(&body) {
            return match has_time(&event) {
                true => RedriveRoute::Update(event),
                false => RedriveRoute::None("the update has no time; newer values could be lost"),
            };
        }
        let is_rule = body["ruleName"].is_string() && body["failures"].is_array();
        let is_call = body["requestContext"].is_object() && body.get("requestPayload").is_some();
        if is_rule || is_call {
            return RedriveRoute::Request;
        }
        to.unwrap_or_else(unknown)
    }

    /// Returns whether a [`Resender`](super::Resender) is needed.
    pub fn needs_resender(&self) -> bool {
        matches!(
            self,
            RedriveRoute::Registration(_)
                | RedriveRoute::Stream(_)
                | RedriveRoute::Update(_)
                | RedriveRoute::Delivery(_)
        )
    }
}

impl fmt::Display for RedriveRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RedriveRoute::Queue(queue) => {
                write!(f, "to {}", name_of(queue))
            }
            RedriveRoute::Registration(notification) => {
                let name = notification.registration.as_deref().unwrap_or_default();
                write!(f, "to the target of {name}")
            }
            RedriveRoute::Stream(range) => {
                write!(f, "{} records from the stream", range.batch_size)
            }
            RedriveRoute::Update(_) => f.write_str("to its shadow"),
            RedriveRoute::Delivery(letter) => write!(f, "to the client {}", letter.id.client()),
            RedriveRoute::Request => f.write_str("failed MQTT request"),
            RedriveRoute::None(reason) => f.write_str(reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use antumbra_service::redrive::Attribute;

    use super::*;

    fn message(
        body: &str,
        attributes: &[(&str, &str)],
        dead_letter_of: Option<&str>,
    ) -> FailedMessage {
        let attribute =
            |(name, text): &(&str, &str)| ((*name).to_owned(), Attribute::text((*text).to_owned()));
        FailedMessage {
            body: body.to_owned(),
            attributes: attributes.iter().map(attribute).collect(),
            dead_letter_of: dead_letter_of.map(str::to_owned),
            ..FailedMessage::default()
        }
    }

    fn options(to: Option<&str>) -> RedriveOptions {
        RedriveOptions {
            to: to.map(str::to_owned),
            ..RedriveOptions::default()
        }
    }

    fn route(message: &FailedMessage, to: Option<&str>) -> String {
        RedriveRoute::of(message, &options(to)).to_string()
    }

    #[test]
    fn every_kind_of_message_has_a_route_and_a_reason() {
        let inbound = "arn:aws:sqs:us-east-1:000000000000:antumbra-inbound";
        let quarantined = [("reason", "NotJson"), ("source", inbound), ("mine", "1")];
        let from_rabbitmq = [("reason", "NotText"), ("source", "rabbitmq:q")];
        let batch = r#"{"requestContext":{"condition":"RetryAttemptsExhausted"},"DDBStreamBatchInfo":{"shardId":"s",
            "startSequenceNumber":"1","endSequenceNumber":"3","batchSize":3,"streamArn":"a"}}"#;
        let notification = r#"{"reason":"QueueDoesNotExist","registration":"all","key":"k","record":{},
            "notification":{},"message":{"id":"n"}}"#;
        let short =
            r#"{"reason":"too large","registration":"all","record":{"sequenceNumber":"1"}}"#;
        let rule = r#"{"ruleName":"antumbra_message_get","failures":[{"errorMessage":"denied"}]}"#;
        let call = r#"{"requestContext":{"condition":"EventAgeExceeded"},"requestPayload":{}}"#;
        // The form that AWS documents, with the payload `{"state":{}}`.
        let update = r#"{"version":"1.0","timestamp":"2026-01-31T12:03:00.568Z",
            "requestContext":{"requestId":"e4b46cbf-b738-4c2b-8880-a18cdf61200e",
                "functionArn":"arn:aws:lambda:us-east-2:123456789012:function:antumbra-shadow-requests:$LATEST",
                "condition":"RetriesExhausted","approximateInvokeCount":3},
            "requestPayload":{"payload":"eyJzdGF0ZSI6e319","topic":"shadow/lamp/update","clientId":"lamp",
                "timestamp":1769860800000},
            "responseContext":{"statusCode":200,"executedVersion":"$LATEST","functionError":"Unhandled"},
            "responsePayload":{"errorType":"UpdateFailed","errorMessage":"Internal service failure"}}"#;
        let untimed = update.replace(r#""timestamp":1769860800000"#, r#""more":1"#);
        let get = update.replace("lamp/update", "lamp/get");
        let foreign = update.replace("antumbra-shadow-requests", "other");
        let no_notification = "no notification was stored; the table has the current state";
        for (message, expected_reason, expected_route) in [
            (
                message("{", &quarantined, None),
                "NotJson",
                "to antumbra-inbound",
            ),
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
            (message(short, &[], None), "too large", no_notification),
            (message(rule, &[], None), "denied", "failed MQTT request"),
            (
                message(call, &[], None),
                "EventAgeExceeded",
                "failed MQTT request",
            ),
            (
                message(update, &[], None),
                "Internal service failure",
                "to its shadow",
            ),
            (
                message(&untimed, &[], None),
                "Internal service failure",
                "the update has no time; newer values could be lost",
            ),
            (
                message(&get, &[], None),
                "Internal service failure",
                "failed MQTT request",
            ),
            (
                message(&foreign, &[], None),
                "Internal service failure",
                "failed MQTT request",
            ),
            (
                message("?", &from_rabbitmq, None),
                "NotText",
                "from RabbitMQ; name the signals queue with `to`",
            ),
            (
                message("?", &[], None),
                "unknown",
                "unknown source; name a queue with `to`",
            ),
        ] {
            assert_eq!(reason(&message), expected_reason);
            assert_eq!(route(&message, None), expected_route);
        }
        let unknown = message("?", &from_rabbitmq, None);
        assert_eq!(
            route(&unknown, Some("antumbra-signals")),
            "to antumbra-signals"
        );
        let back = restored(&message("{", &quarantined, None)).attributes;
        assert_eq!(back.keys().collect::<Vec<_>>(), ["antumbra-origin", "mine"]);
    }

    /// Attributes and bodies come from senders; only the queue service says that a message is a dead letter.
    #[test]
    fn senders_do_not_choose_the_route() {
        let [inbound, deliveries] = ["antumbra-inbound", "antumbra-deliveries"]
            .map(|name| format!("arn:aws:sqs:us-east-1:000000000000:{name}"));
        let forged = [("reason", "NotJson"), ("source", deliveries.as_str())];
        let dead = message("{}", &forged, Some(&inbound));
        assert_eq!(route(&dead, None), "to antumbra-inbound");
        assert_eq!(reason(&dead), "dead letter");
        assert_eq!(
            restored(&dead).attribute("source"),
            Some(deliveries.as_str())
        );
        let unknown = "unknown source; name a queue with `to`";
        assert_eq!(route(&message("{}", &forged, None), None), unknown);
        // A queue of the same name in another account.
        let foreign = inbound.replace("000000000000", "666666666666");
        let foreign = [("reason", "NotJson"), ("source", foreign.as_str())];
        let RedriveRoute::Queue(queue) =
            RedriveRoute::of(&message("{}", &foreign, None), &options(None))
        else {
            panic!("no route");
        };
        assert_eq!(queue, "antumbra-inbound");
        // The body of a quarantined message is not a notification, a position in a stream or an update.
        for body in [
            r#"{"record":{},"registration":"all","notification":{},"message":{"id":"n"}}"#,
            r#"{"DDBStreamBatchInfo":{"shardId":"s","startSequenceNumber":"1","endSequenceNumber":"3","streamArn":"a"}}"#,
            r#"{"requestContext":{"functionArn":"arn:aws:lambda:r:1:function:shadow-requests"},
                "requestPayload":{"topic":"shadow/lamp/update","timestamp":1769860800000}}"#,
        ] {
            assert_eq!(
                route(&message(body, &[("reason", "TooLarge")], None), None),
                unknown
            );
        }
    }

    #[test]
    fn a_redriven_message_carries_its_origin() {
        let first = FailedMessage {
            id: "m".to_owned(),
            sent_milliseconds: 1_564_669_332_364,
            ..message("{}", &[], Some("inbound"))
        };
        let again = restored(&first);
        assert_eq!(again.attribute("antumbra-origin"), Some("1564669332364-m"));
        let second = FailedMessage {
            id: "n".to_owned(),
            ..again
        };
        assert_eq!(
            restored(&second).attribute("antumbra-origin"),
            Some("1564669332364-m")
        );
    }
}
