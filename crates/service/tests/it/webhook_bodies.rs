//! The JSON that clients receive, exactly, in `testdata/webhook-bodies.json`: one line per type of event.

use antumbra_service::clients::{Circuit, Client, ClientId, ClientState, Mode};
use antumbra_service::deliveries::{Delivery, body};
use antumbra_service::sensors::{Address, EventDetail, Generation, SensorEvent, SensorId};
use antumbra_service::sensors::{SilenceTimeout, Value};
use antumbra_service::store::Version;
use antumbra_shadow::Timestamp;

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

fn details() -> [EventDetail; 4] {
    let (seen, lost) = (at("2026-01-31T12:00:00Z"), at("2026-01-31T12:05:00.5Z"));
    let threshold = SilenceTimeout::seconds(300).unwrap();
    [
        EventDetail::StateChanged {
            previous: Value::number("20.50").unwrap(),
            current: Value::Text("\"open\" \u{e9}\u{1F6AA}".to_owned()),
            since: seen,
        },
        EventDetail::ConnectionLost {
            last_seen: seen,
            threshold,
            last_value: Some(Value::Boolean(true)),
        },
        EventDetail::ConnectionRestored {
            lost_at: lost,
            restored_at: at("2026-01-31T12:10:00Z"),
            outage_seconds: 600,
            value: None,
            value_changed: false,
        },
        EventDetail::ConnectionNeverSeen {
            registered_at: seen,
            threshold,
        },
    ]
}

#[test]
fn bodies_are_as_published() {
    let now = at("2026-01-31T12:05:01Z");
    let client = Client {
        id: ClientId::new("night-watch").unwrap(),
        name: "Night watch".to_owned(),
        url: "https://hooks.example/door".to_owned(),
        mode: Mode::Every,
        state: ClientState::Enabled,
        circuit: Circuit::default(),
        version: Version(1),
        created: now,
        updated: now,
    };
    let bodies = (1..).zip(details()).map(|(sequence, detail)| {
        let event = SensorEvent {
            sensor: SensorId::new("door-1").unwrap(),
            generation: Generation::new("g1").unwrap(),
            address: Address::new("Main Street 1, hall").unwrap(),
            sequence,
            number: sequence,
            occurred_at: now,
            detail,
        };
        body(&Delivery::new(&event, Some(now), &client.id), &client)
    });
    let bodies: Vec<String> = bodies.collect();
    let published = include_str!("../../testdata/webhook-bodies.json");
    assert_eq!(format!("[\n{}\n]\n", bodies.join(",\n")), published);
}
