//! From a signal in a queue, or from silence, to a sensor's state and its notifications: the SQS SDK sends, the
//! queue invokes sensor-ingest, the schedule the sweep, and the table's stream the listener.

use std::time::Duration;

use antumbra_dynamodb::{DynamoDbSensors, MAIN, SensorConfig};
use antumbra_local::stack::Options;
use antumbra_service::clock::{Clock, ShiftedClock};
use antumbra_service::sensors::{Connection, ReadingStore, SensorStore, State, Value};
use serde_json::json;

use crate::support::{Home, eventually, registrations, sensor};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sensor_is_lost_and_restored() {
    let states = json!({
        "name": "states",
        "on": {"key": "^SENSOR#.*#STATE$"},
        "to": {"sqs": {"queue": "states"}},
    });
    let clock = ShiftedClock::default();
    let home = Home::start(Options {
        registrations: registrations([states.to_string()]),
        clock: clock.clone(),
        ..Options::default()
    })
    .await;
    let config = SensorConfig::new(MAIN.name);
    let sensors = DynamoDbSensors::connect(&home.database(), config);
    let registered = sensor("0xA", clock.now());
    sensors.register(&registered).await.unwrap();
    let id = registered.sensor.id;
    // Sends a signal, and waits until the state is as expected.
    let signal = async |data: u8, expected: &dyn Fn(&State) -> bool| {
        let text = format!(r#"{{"sensor_id":"0xA","data":{data}}}"#);
        home.send("antumbra-signals", &text).await;
        let state = async || Some(sensors.state(&id).await.unwrap()).filter(expected);
        eventually("the signal", state).await
    };
    let first = signal(0, &|state| state.value.is_some()).await;
    assert_eq!(
        (first.connection, first.sequence()),
        (Connection::Online, 0)
    );
    let changed = signal(1, &|state| state.sequence() == 1).await;
    assert_eq!(changed.value, Some(Value::whole(1)));
    home.received("states", "ONLINE").await;
    let (_, readings) = sensors.latest(&id, 10).await.unwrap();
    assert_eq!(readings.len(), 2);

    // No sensor is lost before its deadline.
    let report = home.stack.sweep().await.unwrap();
    assert_eq!((report.lost, report.finished), (0, true));
    assert!(report.behind_milliseconds.unwrap() < 5000, "{report:?}");

    clock.shift(Duration::from_secs(3600));
    let report = home.stack.sweep().await.unwrap();
    assert_eq!((report.lost, report.finished), (1, true), "{report:?}");
    assert_eq!(home.stack.sweep().await.unwrap().lost, 0, "once");
    let lost = sensors.state(&id).await.unwrap();
    assert_eq!((lost.connection, lost.sequence()), (Connection::Lost, 2));
    home.received("states", "LOST").await;

    let back = signal(0, &|state| state.sequence() == 4).await;
    assert_eq!(
        (back.connection, back.value),
        (Connection::Online, Some(Value::whole(0)))
    );
    // In contact by the shifted clock.
    assert_eq!(home.stack.sweep().await.unwrap().lost, 0);
    home.stop().await;
}
