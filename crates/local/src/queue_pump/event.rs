//! The JSON event for queue messages. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use aws_sdk_sqs::types::{Message, MessageAttributeValue, MessageSystemAttributeName};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::REGION;

/// Attributes that hold times in milliseconds.
const TIMES: [MessageSystemAttributeName; 2] = [
    MessageSystemAttributeName::SentTimestamp,
    MessageSystemAttributeName::ApproximateFirstReceiveTimestamp,
];

/// `{"Records": […]}` for messages of one queue. Times are shifted by the offset of the function's clock.
pub(crate) fn invocation(queue_arn: &str, messages: &[Message], ahead: Duration) -> Vec<u8> {
    let records = messages.iter().map(|m| record(queue_arn, m, ahead));
    let event = json!({ "Records": records.collect::<Vec<_>>() });
    event.to_string().into_bytes()
}

fn record(queue_arn: &str, message: &Message, ahead: Duration) -> Value {
    let system = message.attributes().into_iter().flatten();
    let system = system.map(|(name, value)| (name.as_str(), system_attribute(name, value, ahead)));
    let own = message.message_attributes().into_iter().flatten();
    let own = own.map(|(name, value)| (name, attribute(value)));
    let mut record = json!({
        "messageId": message.message_id().unwrap_or_default(),
        "receiptHandle": message.receipt_handle().unwrap_or_default(),
        "body": message.body().unwrap_or_default(),
        "attributes": system.collect::<BTreeMap<_, _>>(),
        "messageAttributes": own.collect::<BTreeMap<_, _>>(),
        "md5OfBody": message.md5_of_body().unwrap_or_default(),
        "eventSource": "aws:sqs",
        "eventSourceARN": queue_arn,
        "awsRegion": REGION,
    });
    if let Some(md5) = message.md5_of_message_attributes() {
        record["md5OfMessageAttributes"] = md5.into();
    }
    record
}

fn system_attribute(name: &MessageSystemAttributeName, value: &str, ahead: Duration) -> String {
    match value.parse::<u128>() {
        Ok(time) if TIMES.contains(name) => (time + ahead.as_millis()).to_string(),
        _ => value.to_owned(),
    }
}

/// A message attribute; both lists are always present and empty.
fn attribute(value: &MessageAttributeValue) -> Value {
    let mut attribute = json!({
        "stringListValues": [],
        "binaryListValues": [],
        "dataType": value.data_type(),
    });
    if let Some(text) = value.string_value() {
        attribute["stringValue"] = text.into();
    }
    if let Some(bytes) = value.binary_value() {
        attribute["binaryValue"] = STANDARD.encode(bytes).into();
    }
    attribute
}

#[cfg(test)]
mod tests {
    use aws_sdk_sqs::primitives::Blob;

    use super::*;

    #[test]
    fn an_invocation_has_lambdas_names() {
        let attribute = |kind: &str| MessageAttributeValue::builder().data_type(kind);
        let message = Message::builder()
            .message_id("m1")
            .receipt_handle("handle")
            .body("{\"a\": 1.0}")
            .md5_of_body("abc")
            .md5_of_message_attributes("def")
            .attributes(MessageSystemAttributeName::ApproximateReceiveCount, "2")
            .attributes(MessageSystemAttributeName::MessageGroupId, "g")
            .message_attributes("t", attribute("String").string_value("x").build().unwrap())
            .message_attributes(
                "b",
                attribute("Binary")
                    .binary_value(Blob::new([255]))
                    .build()
                    .unwrap(),
            )
            .build();
        let bytes = invocation("arn:queue", &[message], Duration::ZERO);
        let event: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(
            event,
            json!({"Records": [{
                "messageId": "m1",
                "receiptHandle": "handle",
                "body": "{\"a\": 1.0}",
                "attributes": {"ApproximateReceiveCount": "2", "MessageGroupId": "g"},
                "messageAttributes": {
                    "t": {
                        "stringValue": "x",
                        "stringListValues": [],
                        "binaryListValues": [],
                        "dataType": "String",
                    },
                    "b": {
                        "binaryValue": "/w==",
                        "stringListValues": [],
                        "binaryListValues": [],
                        "dataType": "Binary",
                    },
                },
                "md5OfBody": "abc",
                "md5OfMessageAttributes": "def",
                "eventSource": "aws:sqs",
                "eventSourceARN": "arn:queue",
                "awsRegion": "us-east-1",
            }]})
        );
    }

    #[test]
    fn an_advanced_clock_shifts_the_times_in_events() {
        let message = Message::builder()
            .attributes(MessageSystemAttributeName::SentTimestamp, "1000")
            .attributes(MessageSystemAttributeName::ApproximateReceiveCount, "1")
            .build();
        let bytes = invocation("arn:queue", &[message], Duration::from_secs(60));
        let event: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        let attributes = &event["Records"][0]["attributes"];
        assert_eq!(
            attributes,
            &json!({"ApproximateReceiveCount": "1", "SentTimestamp": "61000"})
        );
    }
}
