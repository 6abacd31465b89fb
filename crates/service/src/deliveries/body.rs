//! What a client reads.

use antumbra_shadow::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;

use super::delivery::Delivery;
use crate::clients::Client;

/// The version of the form below.
const VERSION: u32 = 1;
const MILLISECOND: i128 = 1_000_000;

#[derive(Serialize)]
struct Body<'a> {
    id: String,
    r#type: &'static str,
    version: u32,
    sequence: u64,
    occurred_at: String,
    client: Named<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sensor: Option<Placed<'a>>,
    data: &'a RawValue,
}

#[derive(Serialize)]
struct Named<'a> {
    id: &'a str,
    name: &'a str,
}

#[derive(Serialize)]
struct Placed<'a> {
    id: &'a str,
    address: &'a str,
}

/// The JSON that is POSTed. But for the client's name it is the same on every attempt.
pub fn body(delivery: &Delivery, client: &Client) -> String {
    let body = Body {
        id: delivery.id.to_string(),
        r#type: delivery.kind.as_str(),
        version: VERSION,
        sequence: delivery.sequence,
        occurred_at: milliseconds(delivery.occurred_at),
        client: Named {
            id: client.id.as_str(),
            name: &client.name,
        },
        sensor: delivery.sensor.as_ref().map(|sensor| Placed {
            id: sensor.id.as_str(),
            address: &sensor.address,
        }),
        data: &delivery.data,
    };
    // Texts and numbers always have a JSON form.
    serde_json::to_string(&body).unwrap_or_default()
}

/// RFC 3339 in UTC with three digits of a second, always as long.
///
/// ```
/// use antumbra_service::deliveries::milliseconds;
/// use antumbra_shadow::Timestamp;
/// let noon = Timestamp::parse("2026-01-31T13:00:00+01:00").unwrap();
/// assert_eq!(milliseconds(noon), "2026-01-31T12:00:00.000Z");
/// ```
pub fn milliseconds(time: Timestamp) -> String {
    let total = time.nanoseconds().div_euclid(MILLISECOND);
    let (seconds, rest) = (total.div_euclid(1000), total.rem_euclid(1000));
    let whole = Timestamp::from_nanoseconds(seconds * 1_000_000_000).to_string();
    format!("{}.{rest:03}Z", whole.trim_end_matches('Z'))
}
