//! The event that Lambda makes of messages of a queue.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::{ACCOUNT, REGION};

/// A message as the broker delivered it.
#[derive(Debug, Clone, Default)]
pub struct Message {
    pub properties: Properties,
    pub redelivered: bool,
    pub body: Vec<u8>,
}

/// Properties that the publisher set.
#[derive(Debug, Clone, Default)]
pub struct Properties {
    pub content_type: Option<String>,
    pub content_encoding: Option<String>,
    /// Headers as JSON: texts are objects with their bytes.
    pub headers: Map<String, Value>,
    pub delivery_mode: Option<u8>,
    pub priority: Option<u8>,
    pub correlation_id: Option<String>,
    pub reply_to: Option<String>,
    pub expiration: Option<String>,
    pub message_id: Option<String>,
    /// Unix seconds.
    pub timestamp: Option<u64>,
    pub message_type: Option<String>,
    pub user_id: Option<String>,
    pub app_id: Option<String>,
    pub cluster_id: Option<String>,
}

/// Upper bound of the size of a message in an event.
#[cfg(feature = "rabbitmq")]
pub(super) fn bytes(message: &Message) -> usize {
    let headers = Value::Object(message.properties.headers.clone()).to_string();
    message.body.len().div_ceil(3) * 4 + headers.len() + 4 * 1024
}

/// The event of a batch.
pub fn event(queue: &str, virtual_host: &str, messages: &[Message]) -> Bytes {
    let messages: Vec<Value> = messages.iter().map(json_of).collect();
    json!({
        "eventSource": "aws:rmq",
        "eventSourceArn": format!("arn:aws:mq:{REGION}:{ACCOUNT}:broker:local:b-local"),
        "rmqMessagesByQueue": { format!("{queue}::{virtual_host}"): messages },
    })
    .to_string()
    .into()
}

fn json_of(message: &Message) -> Value {
    let properties = &message.properties;
    json!({
        "basicProperties": {
            "contentType": properties.content_type,
            "contentEncoding": properties.content_encoding,
            "headers": properties.headers,
            "deliveryMode": properties.delivery_mode,
            "priority": properties.priority,
            "correlationId": properties.correlation_id,
            "replyTo": properties.reply_to,
            "expiration": properties.expiration,
            "messageId": properties.message_id,
            "timestamp": properties.timestamp.and_then(timestamp),
            "type": properties.message_type,
            "userId": properties.user_id,
            "appId": properties.app_id,
            "clusterId": properties.cluster_id,
            "bodySize": message.body.len(),
        },
        "redelivered": message.redelivered,
        "data": STANDARD.encode(&message.body),
    })
}

/// As Java formats a date, such as `Jan 1, 1970, 12:33:41 AM`.
fn timestamp(seconds: u64) -> Option<String> {
    let time = jiff::Timestamp::from_second(i64::try_from(seconds).ok()?).ok()?;
    Some(time.strftime("%b %-d, %Y, %-I:%M:%S %p").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_the_form_of_lambdas() {
        let message = Message {
            properties: Properties {
                content_type: Some("application/json".to_owned()),
                delivery_mode: Some(2),
                message_id: Some("m-1".to_owned()),
                ..Properties::default()
            },
            redelivered: false,
            body: br#"{"sensor_id": "door-7", "data": 0, "seq": 3}"#.to_vec(),
        };
        let made: Value =
            serde_json::from_slice(&event("antumbra-signals", "/", &[message])).unwrap();
        let lambdas = include_str!("../../../../infra/events/sensor-ingest/rabbitmq.json");
        let mut lambdas: Value = serde_json::from_str(lambdas).unwrap();
        lambdas["eventSourceArn"] = made["eventSourceArn"].clone();
        lambdas["rmqMessagesByQueue"]["antumbra-signals::/"][0]["basicProperties"]["bodySize"] =
            json!(44);
        assert_eq!(made, lambdas);
    }

    #[test]
    fn timestamps_are_written_as_in_amazons_example() {
        assert_eq!(timestamp(2021).unwrap(), "Jan 1, 1970, 12:33:41 AM");
        assert_eq!(
            timestamp(1_700_000_000).unwrap(),
            "Nov 14, 2023, 10:13:20 PM"
        );
        assert_eq!(timestamp(u64::MAX), None);
    }
}
