//! From a signal in a queue, or from silence, to a sensor's state and its notifications: the SQS SDK sends, the
//! queue invokes sensor-ingest, the schedule the sweep, and the table's stream the listener.

use std::time::Duration;

use antumbra_dynamodb::{DynamoDbSensors, MAIN, SensorConfig};
use antumbra_local::{clients::sdk_config, stack::Options};
use antumbra_service::clock::{Clock, ShiftedClock};
use antumbra_service::sensors::{Connection, ReadingStore, SensorId, SensorStore, State, Value};
use serde_json::json;

use crate::support::{self, eventually, registrations, sensor};

struct Home {
    services: support::Home,
    clock: ShiftedClock,
    sensors: DynamoDbSensors,
}

impl Home {
    async fn start() -> Home {
        let states = json!({
            "name": "states",
            "on": {"key": "^SENSOR#.*#STATE$"},
            "to": {"sqs": {"queue": "states"}},
        });
        let clock = ShiftedClock::default();
        let options = Options {
            registrations: registrations([states.to_string()]),
            clock: clock.clone(),
            ..Options::default()
        };
        let services = support::Home::start(options).await;
        let database = sdk_config(services.stack.addresses().dynamodb);
        Home {
            sensors: DynamoDbSensors::connect(&database, SensorConfig::new(MAIN.name)),
            clock,
            services,
        }
    }

    async fn send(&self, text: &str) {
        self.services.send("antumbra-signals", text).await;
    }

    async fn state(&self, id: &str) -> State {
        let id = SensorId::new(id).unwrap();
        self.sensors.state(&id).await.unwrap()
    }

    async fn until(&self, id: &str, what: &str, is_so: impl Fn(&State) -> bool) -> State {
        eventually(what, async || Some(self.state(id).await).filter(&is_so)).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sensor_is_lost_and_restored() {
    let home = Home::start().await;
    home.sensors
        .register(&sensor("0xA", home.clock.now()))
        .await
        .unwrap();
    home.send(r#"{"sensor_id":"0xA","data":0}"#).await;
    let first = home
        .until("0xA", "the first signal", |state| state.value.is_some())
        .await;
    assert_eq!(
        (first.connection, first.sequence()),
        (Connection::Online, 0)
    );
    home.send(r#"{"sensor_id":"0xA","data":1}"#).await;
    let changed = home
        .until("0xA", "the change", |state| state.sequence() == 1)
        .await;
    assert_eq!(changed.value, Some(Value::whole(1)));
    home.services.received("states", "ONLINE").await;
    let (_, readings) = home
        .sensors
        .latest(&SensorId::new("0xA").unwrap(), 10)
        .await
        .unwrap();
    assert_eq!(readings.len(), 2);

    // No sensor is lost before its deadline.
    let report = home.services.stack.sweep().await.unwrap();
    assert_eq!((report.lost, report.finished), (0, true));
    assert!(report.behind_milliseconds.unwrap() < 5000, "{report:?}");

    home.clock.shift(Duration::from_secs(3600));
    let report = home.services.stack.sweep().await.unwrap();
    assert_eq!((report.lost, report.finished), (1, true), "{report:?}");
    assert_eq!(home.services.stack.sweep().await.unwrap().lost, 0, "once");
    let lost = home.state("0xA").await;
    assert_eq!((lost.connection, lost.sequence()), (Connection::Lost, 2));
    home.services.received("states", "LOST").await;

    home.send(r#"{"sensor_id":"0xA","data":0}"#).await;
    let back = home
        .until("0xA", "the return", |state| state.sequence() == 4)
        .await;
    assert_eq!(
        (back.connection, back.value),
        (Connection::Online, Some(Value::whole(0)))
    );
    assert_eq!(
        home.services.stack.sweep().await.unwrap().lost,
        0,
        "in contact by the shifted clock"
    );
    home.services.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_signals_are_quarantined() {
    let home = Home::start().await;
    home.send(r#"{"sensor_id":"nobody","data":1}"#).await;
    let rejected = home
        .services
        .received("antumbra-quarantine", "UnknownSensor")
        .await;
    assert_eq!(rejected.body.unwrap(), r#"{"sensor_id":"nobody","data":1}"#);
    home.services.stop().await;
}
