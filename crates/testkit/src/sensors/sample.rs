//! Builders of sensors and signals.

use std::time::Duration;

use antumbra_service::sensors::reading_time::from_milliseconds;
use antumbra_service::sensors::{
    Generation, Location, Outcome, RegisteredSensor, Sensor, SensorId, SensorStore, Signal, State,
    StateStore, Value, Version,
};
use antumbra_shadow::Timestamp;

/// 2026-01-31 at noon, when every test starts.
pub const NOON_MS: i64 = 1_769_860_800_000;

pub fn noon(after: Duration) -> Timestamp {
    from_milliseconds(NOON_MS).after(after)
}

/// Seconds after noon.
pub fn at(seconds: i64) -> Timestamp {
    from_milliseconds(NOON_MS + seconds * 1000)
}

pub fn id(text: &str) -> SensorId {
    SensorId::new(text).unwrap()
}

pub fn sensor(text: &str, [city, building, floor, room]: [&str; 4]) -> Sensor {
    Sensor::new(
        id(text),
        Location::new(city, building, floor, room).unwrap(),
    )
}

/// A sensor at a default location.
pub fn somewhere(text: &str) -> Sensor {
    sensor(text, ["Poznań", "A", "2", "13"])
}

/// The first version of a sensor, registered at noon.
pub fn new(sensor: Sensor) -> RegisteredSensor {
    let generation = Generation::new(format!("g-{:016x}", fastrand::u64(..))).unwrap();
    RegisteredSensor {
        sensor,
        version: Version(1),
        registered_at: at(0),
        generation,
    }
}

/// Registers a sensor at a default location at noon.
pub async fn registered<S: SensorStore>(store: &S, text: &str) -> RegisteredSensor {
    store.register(&new(somewhere(text))).await.unwrap()
}

/// A signal measured and sent at these seconds after noon.
pub fn signal(text: &str, value: i64, measured: i64, sent: i64) -> Signal {
    numbered(text, value, measured, 0, sent)
}

/// A signal with a number of its own.
pub fn numbered(text: &str, value: i64, measured: i64, number: u64, sent: i64) -> Signal {
    let value = Value::whole(value);
    Signal::new(
        id(text),
        value,
        Some(at(measured)),
        Some(number),
        at(sent),
        "-",
    )
    .unwrap()
}

/// Records a signal of a sensor that is there.
pub async fn record<S: StateStore>(store: &S, signal: &Signal) -> Outcome {
    store.record(signal).await.unwrap().unwrap().outcome
}

/// The state of a sensor that is there.
pub async fn state<S: SensorStore>(store: &S, text: &str) -> State {
    store.state(&id(text)).await.unwrap()
}
