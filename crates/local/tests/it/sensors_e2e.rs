//! From a signal in a queue, or from silence, to a sensor's state and its notifications: the SQS SDK sends, the
//! queue invokes sensor-ingest, the schedule the sweep, and the table's stream the listener.

use std::time::Duration;

use antumbra_dynamodb::{DynamoDbSensors, MAIN, SensorConfig};
use antumbra_local::{
    clients::sdk_config,
    stack::{Options, Stack},
};
use antumbra_registration::Registrations;
use antumbra_service::clock::{Clock, ShiftedClock};
use antumbra_service::sensors::{
    Connection, Generation, Location, ReadingStore, RegisteredSensor, Sensor, SensorId,
    SensorStore, State, Value, Version,
};
use aws_sdk_sqs::Client as Sqs;
use serde_json::json;

use crate::support::{eventually, soon};

struct Home {
    stack: Stack,
    clock: ShiftedClock,
    sqs: Sqs,
    sensors: DynamoDbSensors,
}

impl Home {
    async fn start() -> Home {
        let states = json!({
            "name": "states",
            "on": {"key": "^SENSOR#.*#STATE$"},
            "to": {"sqs": {"queue": "states"}},
        });
        let file = ("states.json".to_owned(), states.to_string());
        let clock = ShiftedClock::default();
        let options = Options {
            registrations: Registrations::load([file], &|_| None).unwrap(),
            clock: clock.clone(),
            ..Options::default()
        };
        let stack = Stack::start(options).await.unwrap();
        let database = sdk_config(stack.addresses().dynamodb);
        Home {
            sqs: Sqs::new(&sdk_config(stack.addresses().aws)),
            sensors: DynamoDbSensors::connect(&database, SensorConfig::new(MAIN.name)),
            clock,
            stack,
        }
    }

    async fn register(&self, id: &str) {
        let location = Location::new("Poznań", "A", "2", "13").unwrap();
        let new = RegisteredSensor {
            sensor: Sensor::new(SensorId::new(id).unwrap(), location),
            version: Version::NONE.next(),
            registered_at: self.clock.now(),
            generation: Generation::new("g-1").unwrap(),
        };
        self.sensors.register(&new).await.unwrap();
    }

    async fn send(&self, text: &str) {
        let call = self.sqs.send_message().message_body(text);
        let call = call.queue_url(self.stack.queue_url("antumbra-signals"));
        call.send().await.unwrap();
    }

    async fn state(&self, id: &str) -> State {
        self.sensors
            .state(&SensorId::new(id).unwrap())
            .await
            .unwrap()
    }

    async fn until(&self, id: &str, what: &str, is_so: impl Fn(&State) -> bool) -> State {
        eventually(what, async || Some(self.state(id).await).filter(&is_so)).await
    }

    /// Receives messages of a queue until one contains this text.
    async fn received(&self, queue: &str, text: &str) -> String {
        let receiving = async {
            loop {
                let call = self.sqs.receive_message().wait_time_seconds(1);
                let call = call.queue_url(self.stack.queue_url(queue));
                let call = call
                    .message_attribute_names("All")
                    .max_number_of_messages(10);
                for message in call.send().await.unwrap().messages.unwrap_or_default() {
                    if format!("{message:?}").contains(text) {
                        return message.body.unwrap_or_default();
                    }
                }
            }
        };
        soon(text, receiving).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sensor_is_lost_and_restored() {
    let home = Home::start().await;
    home.register("0xA").await;
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
    home.received("states", "ONLINE").await;
    let (_, readings) = home
        .sensors
        .latest(&SensorId::new("0xA").unwrap(), 10)
        .await
        .unwrap();
    assert_eq!(readings.len(), 2);

    // No sensor is lost before its deadline.
    let report = home.stack.sweep().await.unwrap();
    assert_eq!((report.lost, report.finished), (0, true));
    assert!(report.behind_milliseconds.unwrap() < 5000, "{report:?}");

    home.clock.shift(Duration::from_secs(3600));
    let report = home.stack.sweep().await.unwrap();
    assert_eq!((report.lost, report.finished), (1, true), "{report:?}");
    assert_eq!(home.stack.sweep().await.unwrap().lost, 0, "once");
    let lost = home.state("0xA").await;
    assert_eq!((lost.connection, lost.sequence()), (Connection::Lost, 2));
    home.received("states", "LOST").await;

    home.send(r#"{"sensor_id":"0xA","data":0}"#).await;
    let back = home
        .until("0xA", "the return", |state| state.sequence() == 4)
        .await;
    assert_eq!(
        (back.connection, back.value),
        (Connection::Online, Some(Value::whole(0)))
    );
    assert_eq!(
        home.stack.sweep().await.unwrap().lost,
        0,
        "in contact by the shifted clock"
    );
    home.stack.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_signals_are_quarantined() {
    let home = Home::start().await;
    home.send(r#"{"sensor_id":"nobody","data":1}"#).await;
    let text = home.received("antumbra-quarantine", "UnknownSensor").await;
    assert_eq!(text, r#"{"sensor_id":"nobody","data":1}"#);
    home.stack.stop().await;
}
