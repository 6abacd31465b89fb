//! A delivery as a message in a queue.

use antumbra_shadow::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::delivery::{Delivery, SensorRef};
use crate::clock::rfc3339_milliseconds;
use crate::notifications::Message;
use crate::sensors::SensorId;

/// Error of a message that is not a delivery.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a delivery: {0}")]
pub struct InvalidMessage(String);

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Body<'a> {
    id: String,
    r#type: String,
    sequence: u64,
    number: u64,
    occurred_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    sensor: Option<Sensor>,
    #[serde(borrow)]
    data: &'a RawValue,
    #[serde(default, skip_serializing_if = "is_zero")]
    round: u32,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    released: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sensor {
    id: String,
    address: String,
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(round: &u32) -> bool {
    *round == 0
}

/// Encodes a delivery as the text of a message.
pub fn encode(delivery: &Delivery) -> String {
    let body = Body {
        id: delivery.id.to_string(),
        r#type: delivery.event_type.as_str().to_owned(),
        sequence: delivery.sequence,
        number: delivery.number,
        occurred_at: rfc3339_milliseconds(delivery.occurred_at),
        sensor: delivery.sensor.as_ref().map(|sensor| Sensor {
            id: sensor.id.as_str().to_owned(),
            address: sensor.address.clone(),
        }),
        data: &delivery.data,
        round: delivery.round,
        released: delivery.released,
    };
    // Texts and numbers always have a JSON form.
    serde_json::to_string(&body).unwrap_or_default()
}

/// Decodes the text of a message.
pub fn decode(text: &str) -> Result<Delivery, InvalidMessage> {
    let invalid = |fault: &dyn std::fmt::Display| InvalidMessage(fault.to_string());
    let body: Body<'_> = serde_json::from_str(text).map_err(|fault| invalid(&fault))?;
    let sensor = match body.sensor {
        None => None,
        Some(sensor) => Some(SensorRef {
            id: SensorId::new(sensor.id).map_err(|fault| invalid(&fault))?,
            address: sensor.address,
        }),
    };
    Ok(Delivery {
        id: body.id.parse().map_err(|fault| invalid(&fault))?,
        event_type: body
            .r#type
            .parse()
            .map_err(|fault: String| invalid(&fault))?,
        sequence: body.sequence,
        number: body.number,
        occurred_at: Timestamp::parse(&body.occurred_at)
            .ok_or_else(|| invalid(&"occurredAt is no time"))?,
        sensor,
        data: body.data.to_owned(),
        round: body.round,
        released: body.released,
    })
}

/// Returns the message group: deliveries of one sensor to one client stay in order.
pub fn group(delivery: &Delivery) -> String {
    let sensor = delivery
        .sensor
        .as_ref()
        .map_or("", |sensor| sensor.id.as_str());
    format!("{}/{sensor}", delivery.id.client())
}

/// The message for a queue. Every round has an id of its own, or the queue would take a delivery that is
/// queued again for a duplicate.
pub fn queue_message(delivery: &Delivery) -> Message {
    let id = match delivery.round {
        0 => delivery.id.to_string(),
        round => format!("{}-{round}", delivery.id),
    };
    Message {
        id,
        key: group(delivery),
        body: encode(delivery),
        tenant: Some(delivery.id.client().to_string()),
        ..Message::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::ClientId;
    use crate::deliveries::{DeliveryId, EventType};

    fn delivery() -> Delivery {
        let time = Timestamp::parse("2026-01-31T12:00:00.250Z").unwrap();
        let client = ClientId::new("night-watch").unwrap();
        Delivery {
            id: DeliveryId::new(&client, time, 17, "door-7"),
            event_type: EventType::StateChanged,
            sequence: 17,
            number: 9,
            occurred_at: time,
            sensor: Some(SensorRef {
                id: SensorId::new("door-7").unwrap(),
                address: "Poznań, \"A\"".to_owned(),
            }),
            data: RawValue::from_string(
                r#"{"previous":12345678901234567890.123456789,"current":1}"#.to_owned(),
            )
            .unwrap(),
            round: 0,
            released: false,
        }
    }

    #[test]
    fn it_comes_back_as_it_went_with_every_digit() {
        for (round, released) in [(0, false), (3, true)] {
            let sent = Delivery {
                round,
                released,
                ..delivery()
            };
            let text = encode(&sent);
            let read = decode(&text).unwrap();
            assert_eq!(encode(&read), text);
            assert_eq!(read.id, sent.id);
            assert_eq!(read.data.get(), sent.data.get());
            assert_eq!((read.round, read.released), (round, released));
        }
    }

    #[test]
    fn each_round_is_another_message_in_the_same_group() {
        let first = queue_message(&delivery());
        let again = queue_message(&Delivery {
            round: 1,
            ..delivery()
        });
        assert_ne!(first.id, again.id);
        assert_eq!(
            (&first.key, first.key.as_str()),
            (&again.key, "night-watch/door-7")
        );
    }

    #[test]
    fn what_is_no_delivery_is_told_so() {
        let fine = encode(&delivery());
        for text in [
            String::new(),
            "null".to_owned(),
            "{}".to_owned(),
            fine.replace("state.changed", "state.exploded"),
            fine.replace("night-watch_", "night watch_"),
            fine.replace("2026-01-31", "yesterday"),
            fine.replace("door-7", "door 7"),
            fine.replacen('{', "{\"more\":1,", 1),
        ] {
            assert!(decode(&text).is_err(), "{text}");
        }
    }
}
