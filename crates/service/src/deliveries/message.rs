//! A delivery as a message in a queue. The message only names the delivery; its content is in the history, so
//! that nobody who can write to the queue can invent one.

use serde::{Deserialize, Serialize};

use super::delivery::Delivery;
use super::id::DeliveryId;
use crate::notifications::Message;
use crate::sensors::SensorId;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a delivery: {0}")]
pub struct InvalidMessage(String);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryMessage {
    pub id: DeliveryId,
    /// Its sensor, so that everything about the delivery is read with one call; `None` for a test.
    pub sensor: Option<SensorId>,
    /// Round of the delivery. A message of an earlier round than that of the record is ignored.
    pub round: u32,
    /// Number of times the delivery was queued again.
    pub queued: u32,
    pub manual: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    sensor: Option<String>,
    #[serde(default)]
    round: u32,
    #[serde(default)]
    queued: u32,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    manual: bool,
}

impl DeliveryMessage {
    pub fn first(delivery: &Delivery) -> DeliveryMessage {
        DeliveryMessage {
            id: delivery.id.clone(),
            sensor: delivery.sensor.as_ref().map(|sensor| sensor.id.clone()),
            round: 0,
            queued: 0,
            manual: false,
        }
    }

    pub fn encode(&self) -> String {
        let body = Body {
            id: self.id.to_string(),
            sensor: self.sensor.as_ref().map(SensorId::to_string),
            round: self.round,
            queued: self.queued,
            manual: self.manual,
        };
        // Texts and numbers always have a JSON form.
        serde_json::to_string(&body).unwrap_or_default()
    }

    pub fn decode(text: &str) -> Result<DeliveryMessage, InvalidMessage> {
        let invalid = |fault: &dyn std::fmt::Display| InvalidMessage(fault.to_string());
        let body: Body = serde_json::from_str(text).map_err(|fault| invalid(&fault))?;
        let sensor = body.sensor.map(SensorId::new).transpose();
        Ok(DeliveryMessage {
            id: body.id.parse().map_err(|fault| invalid(&fault))?,
            sensor: sensor.map_err(|fault| invalid(&fault))?,
            round: body.round,
            queued: body.queued,
            manual: body.manual,
        })
    }

    /// Returns the message group: deliveries of one sensor to one client stay in order.
    pub fn group(&self) -> String {
        let sensor = self.sensor.as_ref().map_or("", SensorId::as_str);
        format!("{}/{sensor}", self.id.client())
    }

    /// Returns the message for a queue. It has another id each time, or a FIFO queue would discard a delivery
    /// that is queued again as a duplicate.
    pub fn to_queue(&self) -> Message {
        Message {
            id: format!("{}-{}", self.id, self.queued),
            key: self.group(),
            body: self.encode(),
            tenant: Some(self.id.client().to_string()),
            ..Message::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use antumbra_shadow::Timestamp;

    use super::*;
    use crate::clients::ClientId;

    fn message(queued: u32) -> DeliveryMessage {
        let time = Timestamp::parse("2026-01-31T12:00:00.250Z").unwrap();
        let client = ClientId::new("night-watch").unwrap();
        DeliveryMessage {
            id: DeliveryId::new(&client, time, 17, "door-7"),
            sensor: SensorId::new("door-7").ok(),
            round: queued / 2,
            queued,
            manual: queued == 3,
        }
    }

    #[test]
    fn messages_survive_the_queue_and_differ_each_time_in_the_same_group() {
        let (first, again) = (message(0), message(3));
        for sent in [&first, &again] {
            assert_eq!(DeliveryMessage::decode(&sent.encode()).as_ref(), Ok(sent));
            assert_eq!(sent.to_queue().key, "night-watch/door-7");
            assert_eq!(sent.to_queue().tenant.as_deref(), Some("night-watch"));
        }
        assert_ne!(first.to_queue().id, again.to_queue().id);
    }

    #[test]
    fn other_texts_are_rejected() {
        let valid = message(1).encode();
        for text in [
            "",
            "{}",
            "[]",
            &valid.replace("door-7", "door 7"),
            &valid.replace("night-watch_", "night watch_"),
            &valid.replace("\"round\":0", "\"round\":-1"),
            &valid.replace('}', ",\"data\":{}}"),
        ] {
            assert!(DeliveryMessage::decode(text).is_err(), "{text}");
        }
    }
}
