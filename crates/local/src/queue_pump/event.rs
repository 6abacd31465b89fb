//! The JSON event for queue messages. Pure.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use aws_sdk_sqs::types::{Message, MessageAttributeValue, MessageSystemAttributeName};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Serialize;

use crate::REGION;

/// Attributes that hold times in milliseconds.
const TIMES: [MessageSystemAttributeName; 2] = [
    MessageSystemAttributeName::SentTimestamp,
    MessageSystemAttributeName::ApproximateFirstReceiveTimestamp,
];

/// `{"Records": […]}` for messages of one queue. Times are shifted by the offset of the function's clock.
pub(crate) fn invocation(
    queue_arn: &str,
    messages: &[Message],
    ahead: Duration,
) -> serde_json::Result<Vec<u8>> {
    let records = messages
        .iter()
        .map(|m| record(queue_arn, m, ahead))
        .collect();
    serde_json::to_vec(&Event { records })
}

#[derive(Serialize)]
struct Event<'a> {
    #[serde(rename = "Records")]
    records: Vec<Record<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Record<'a> {
    message_id: &'a str,
    receipt_handle: &'a str,
    body: &'a str,
    attributes: BTreeMap<&'a str, Cow<'a, str>>,
    message_attributes: BTreeMap<&'a str, Attribute<'a>>,
    md5_of_body: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    md5_of_message_attributes: Option<&'a str>,
    event_source: &'static str,
    #[serde(rename = "eventSourceARN")]
    event_source_arn: &'a str,
    aws_region: &'static str,
}

/// A message attribute; both lists are always present and empty.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Attribute<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    string_value: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    binary_value: Option<String>,
    string_list_values: [&'a str; 0],
    binary_list_values: [&'a str; 0],
    data_type: &'a str,
}

fn record<'a>(queue_arn: &'a str, message: &'a Message, ahead: Duration) -> Record<'a> {
    Record {
        message_id: message.message_id().unwrap_or_default(),
        receipt_handle: message.receipt_handle().unwrap_or_default(),
        body: message.body().unwrap_or_default(),
        attributes: system_attributes(message.attributes(), ahead),
        message_attributes: message
            .message_attributes()
            .into_iter()
            .flatten()
            .map(|(name, value)| (name.as_str(), attribute(value)))
            .collect(),
        md5_of_body: message.md5_of_body().unwrap_or_default(),
        md5_of_message_attributes: message.md5_of_message_attributes(),
        event_source: "aws:sqs",
        event_source_arn: queue_arn,
        aws_region: REGION,
    }
}

fn system_attributes(
    attributes: Option<&HashMap<MessageSystemAttributeName, String>>,
    ahead: Duration,
) -> BTreeMap<&str, Cow<'_, str>> {
    let pairs = attributes.into_iter().flatten();
    pairs
        .map(|(name, value)| {
            let value = match value.parse::<u128>() {
                Ok(time) if !ahead.is_zero() && TIMES.contains(name) => {
                    Cow::Owned((time + ahead.as_millis()).to_string())
                }
                _ => Cow::Borrowed(value.as_str()),
            };
            (name.as_str(), value)
        })
        .collect()
}

fn attribute(value: &MessageAttributeValue) -> Attribute<'_> {
    Attribute {
        string_value: value.string_value(),
        binary_value: value.binary_value().map(|bytes| STANDARD.encode(bytes)),
        string_list_values: [],
        binary_list_values: [],
        data_type: value.data_type(),
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_sqs::primitives::Blob;
    use serde_json::json;

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
        let bytes = invocation("arn:queue", &[message], Duration::ZERO).unwrap();
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
        let bytes = invocation("arn:queue", &[message], Duration::from_secs(60)).unwrap();
        let event: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        let attributes = &event["Records"][0]["attributes"];
        assert_eq!(
            attributes,
            &json!({"ApproximateReceiveCount": "1", "SentTimestamp": "61000"})
        );
    }
}
