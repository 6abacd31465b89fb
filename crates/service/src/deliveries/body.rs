//! The JSON body of the POST that delivers an event to a webhook client.

use serde::Serialize;
use serde_json::value::RawValue;

use super::delivery::Delivery;
use crate::clients::Client;
use crate::clock::rfc3339_milliseconds;

/// Version of the body's format.
const VERSION: u32 = 1;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    id: String,
    r#type: &'static str,
    version: u32,
    sequence: u64,
    occurred_at: String,
    client: BodyClient<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sensor: Option<BodySensor<'a>>,
    data: &'a RawValue,
}

#[derive(Serialize)]
struct BodyClient<'a> {
    id: &'a str,
    name: &'a str,
}

#[derive(Serialize)]
struct BodySensor<'a> {
    id: &'a str,
    address: &'a str,
    /// Registration of the sensor; `sequence` starts again with each.
    generation: &'a str,
}

/// Returns the JSON to POST. It is the same on every attempt, except for the name of the client.
pub fn body(delivery: &Delivery, client: &Client) -> String {
    let body = Body {
        id: delivery.id.to_string(),
        r#type: delivery.event_type.as_str(),
        version: VERSION,
        sequence: delivery.sequence,
        occurred_at: rfc3339_milliseconds(delivery.occurred_at),
        client: BodyClient {
            id: client.id.as_str(),
            name: &client.name,
        },
        sensor: delivery.sensor.as_ref().map(|sensor| BodySensor {
            id: sensor.id.as_str(),
            address: &sensor.address,
            generation: sensor.generation.as_str(),
        }),
        data: &delivery.data,
    };
    // Cannot fail: the fields are texts, numbers and valid JSON.
    serde_json::to_string(&body).unwrap_or_default()
}
