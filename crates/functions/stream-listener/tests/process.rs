//! The binary as Lambda runs it.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use antumbra_dynamodb::{
    DynamoDbClients, DynamoDbSensors, DynamoDbSettings, DynamoDbShadows, MAIN, SensorConfig,
    ShadowTableConfig,
};
use antumbra_publish::webhook::Guard;
use antumbra_service::clients::{ClientId, Clients, Mode, NewClient};
use antumbra_service::clock::{Clock as _, SystemClock};
use antumbra_service::sensors::{
    self, Generation, Location, RegisteredSensor, Sensor, SensorId, SensorStore as _, Signal,
    StateStore as _,
};
use antumbra_service::shadows::{Layout, ShadowId, Shadows};
use antumbra_service::store::Version;
use antumbra_testkit::dynamodb::TestTable;
use antumbra_testkit::lambda::{AwsServer, Environment, Lambda, NO_FAILURES, assert_rejects};
use serde_json::{Value, json};

const BINARY: &str = env!("CARGO_BIN_EXE_antumbra-stream-listener");
const EVENT: &str = r#"{"Records":[{"eventID":"1","eventName":"INSERT","eventSource":"aws:dynamodb","dynamodb":{
    "SequenceNumber":"100","Keys":{"PK":{"S":"DS#lamp"},"SK":{"S":"DSR#main"}},
    "NewImage":{"version":{"N":"1"},"reported":{"M":{"led":{"S":"on"}}}}}}]}"#;

fn environment(registrations: &Path, sqs: &AwsServer) -> Environment {
    vec![
        ("AWS_ENDPOINT_URL", sqs.url()),
        ("UNDELIVERABLE_QUEUE_URL", sqs.queue_url("undeliverable")),
        ("QUEUE", sqs.queue_url("changes")),
        ("REGISTRATIONS", registrations.to_str().unwrap().to_owned()),
    ]
}

#[test]
fn a_change_is_sent_to_the_registered_queue() {
    let directory = tempfile::tempdir().unwrap();
    let rule = r#"{"name":"all","to":{"sqs":{"queue":"${env:QUEUE}"}}}"#;
    std::fs::write(directory.path().join("all.json"), rule).unwrap();
    let sqs = AwsServer::start();
    let function = Lambda::start(BINARY, &environment(directory.path(), &sqs));
    for sent in 1..=2 {
        assert_eq!(function.invoke(EVENT).unwrap(), NO_FAILURES);
        let messages = sqs.sent();
        assert_eq!(messages.len(), sent);
        let body = messages[sent - 1]["MessageBody"].as_str().unwrap();
        let notification: Value = serde_json::from_str(body).unwrap();
        assert_eq!(notification["diff"]["added"]["/led"], "on");
        assert_eq!(notification["version"], 1);
    }
    let error = function.invoke("[]").unwrap_err();
    assert!(error.contains("EventError"), "{error}");
}

#[test]
fn registrations_of_records_that_the_filters_leave_out_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let rule = r#"{"name":"readings","on":{"key":"^SENSOR#[^#]+#READ#"},"to":{"sqs":{"queue":"${env:QUEUE}"}}}"#;
    std::fs::write(directory.path().join("readings.json"), rule).unwrap();
    let sqs = AwsServer::start();
    let environment = environment(directory.path(), &sqs);
    assert_rejects(
        BINARY,
        &environment,
        &[("STREAM_KINDS", Some("shadows,states,messages"))],
    );
    for kinds in ["readings", "all", ""] {
        let environment = [
            environment.clone(),
            vec![("STREAM_KINDS", kinds.to_owned())],
        ];
        let function = Lambda::start(BINARY, &environment.concat());
        assert_eq!(function.invoke(EVENT).unwrap(), NO_FAILURES, "{kinds}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_settings_of_the_table_are_those_of_the_function() {
    let directory = tempfile::tempdir().unwrap();
    let rule = r#"{"name":"all","as":"shadow-documents","to":{"sqs":{"queue":"${env:QUEUE}"}}}"#;
    std::fs::write(directory.path().join("all.json"), rule).unwrap();
    let table = TestTable::create(MAIN).await;
    let store = ShadowTableConfig::new(&table.name).layout(Layout::Combined);
    let shadows = Shadows::new(DynamoDbShadows::new(table.client.clone(), store));
    let lamp = ShadowId::new("lamp").unwrap();
    let desired = serde_json::json!({"led": "off"});
    shadows.desire(&lamp, &desired).await.unwrap();
    let sqs = AwsServer::start();
    let mut environment = environment(directory.path(), &sqs);
    environment.extend([
        ("TABLE", table.name.clone()),
        ("AWS_ENDPOINT_URL_DYNAMODB", table.endpoint.url()),
        ("COMBINED", "true".to_owned()),
    ]);

    // The other document of a shadow is where the layout says.
    let function = Lambda::start(BINARY, &environment);
    assert_eq!(function.invoke(EVENT).unwrap(), NO_FAILURES);
    let body = sqs.sent()[0]["MessageBody"].as_str().unwrap().to_owned();
    let documents: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(documents["current"]["state"]["desired"], desired);

    let settings = DynamoDbSettings::new(table.client.clone(), &table.name);
    let recorded = settings.read().await.unwrap().unwrap();
    assert_eq!(recorded.layout, Layout::Combined);
    assert_rejects(
        BINARY,
        &environment,
        &[
            ("COMBINED", None),
            ("TIMESTAMP_FIELDS", Some("ts")),
            ("ID_FIELD", Some("key")),
        ],
    );
}

/// A name of 40,000 bytes above thousands of leaves: each of them has a pointer with that name.
#[test]
fn the_worst_item_fits_into_the_memory_of_the_function() {
    let directory = tempfile::tempdir().unwrap();
    let rule =
        r#"{"name":"all","send":["old","new","diff"],"to":{"sqs":{"queue":"${env:QUEUE}"}}}"#;
    std::fs::write(directory.path().join("all.json"), rule).unwrap();
    let sqs = AwsServer::start();
    let function = Lambda::start(BINARY, &environment(directory.path(), &sqs));
    let document = |value: u8| {
        let leaf = |n: usize| format!(r#""{n}":{{"N":"{value}"}}"#);
        let leaves: Vec<String> = (0..20_000).map(leaf).collect();
        let name = "n".repeat(40_000);
        format!(r#"{{"M":{{"{name}":{{"M":{{{}}}}}}}}}"#, leaves.join(","))
    };
    let modified = EVENT.replace("INSERT", "MODIFY").replace(
        r#""NewImage":{"version":{"N":"1"},"reported":{"M":{"led":{"S":"on"}}}}"#,
        &format!(
            r#""OldImage":{{"version":{{"N":"1"}},"reported":{}}},"NewImage":{{"version":{{"N":"2"}},"reported":{}}}"#,
            document(1),
            document(2)
        ),
    );
    assert!(modified.len() > 500_000);
    assert_eq!(function.invoke(&modified).unwrap(), NO_FAILURES);
    let body = sqs.sent()[0]["MessageBody"].as_str().unwrap().to_owned();
    let notification: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(
        notification["truncated"],
        serde_json::json!(["old", "new", "diff"])
    );
    let status = std::fs::read_to_string(format!("/proc/{}/status", function.id()));
    let peak = status.unwrap_or_default();
    let peak = peak.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    // Only Linux reports it.
    if let Some(peak) = peak {
        let kilobytes: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
        assert!(kilobytes < 256 * 1024, "{kilobytes} KB");
    }
}

/// A sensor whose value changed, with the stream record of the change.
async fn changed_sensor(table: &TestTable) -> (SensorId, String) {
    let sensors = DynamoDbSensors::new(table.client.clone(), SensorConfig::new(&table.name));
    let now = SystemClock.now();
    let location = Location::new("Poznań", "A", "2", "13").unwrap();
    let registered = RegisteredSensor {
        sensor: Sensor::new(SensorId::new("door-7").unwrap(), location),
        version: Version(1),
        registered_at: now,
        generation: Generation::new("g1").unwrap(),
    };
    sensors.register(&registered).await.unwrap();
    let id = registered.sensor.id;
    let mut images = Vec::new();
    for value in [0, 1] {
        let (sent, value) = (now.after(Duration::from_millis(value)), value as i64);
        let value = sensors::Value::whole(value);
        let signal = Signal::new(id.clone(), value, None, None, sent, "m").unwrap();
        sensors.record(&signal).await.unwrap().unwrap();
        let key = json!({"PK": {"S": "SENSOR#door-7"}, "SK": {"S": "STATE"}});
        let get = json!({"TableName": table.name, "Key": key, "ConsistentRead": true});
        images.push(table.endpoint.call("GetItem", &get).await.1["Item"].take());
    }
    let seconds = now.nanoseconds() as f64 / 1e9;
    let event = json!({"Records": [{"eventID": "1", "eventName": "MODIFY", "eventSource": "aws:dynamodb",
        "dynamodb": {"SequenceNumber": "100", "ApproximateCreationDateTime": seconds.floor(),
            "Keys": {"PK": {"S": "SENSOR#door-7"}, "SK": {"S": "STATE"}},
            "OldImage": images[0], "NewImage": images[1]}}]});
    (id, event.to_string())
}

/// A function that ends after it recorded a delivery and before it queued it gets the same event again.
#[tokio::test(flavor = "multi_thread")]
async fn a_recorded_delivery_is_queued_although_its_link_was_removed_meanwhile() {
    let directory = tempfile::tempdir().unwrap();
    let rule = include_str!("../../../../registrations/sensor-clients.json");
    std::fs::write(directory.path().join("clients.json"), rule).unwrap();
    let (table, sqs) = (TestTable::create(MAIN).await, AwsServer::start());
    let mut environment = environment(directory.path(), &sqs);
    environment.extend([
        ("TABLE", table.name.clone()),
        ("DELIVERIES_QUEUE_URL", sqs.queue_url("deliveries")),
        (
            "DELIVERIES_FIFO_QUEUE_URL",
            sqs.queue_url("deliveries.fifo"),
        ),
        ("AWS_ENDPOINT_URL_DYNAMODB", table.endpoint.url()),
    ]);
    let function = Lambda::start(BINARY, &environment);
    let (sensor, event) = changed_sensor(&table).await;
    let store = DynamoDbClients::new(table.client.clone(), &table.name);
    let guard = Guard::new("http://127.0.0.0/8".parse().unwrap());
    let clients = Clients::new(store, guard, Arc::new(SystemClock));
    let new = NewClient {
        id: Some(ClientId::new("watch").unwrap()),
        name: "Watch".to_owned(),
        url: "http://127.0.0.1/hook".to_owned(),
        mode: Mode::Every,
        requested: None,
    };
    let client = clients.create(new).await.unwrap().client.id;
    clients.link(&client, &sensor).await.unwrap();
    assert_eq!(function.invoke(&event).unwrap(), NO_FAILURES);
    clients.unlink(&client, &sensor).await.unwrap();
    assert_eq!(function.invoke(&event).unwrap(), NO_FAILURES);
    let bodies: Vec<Value> = sqs
        .sent()
        .iter()
        .map(|sent| sent["MessageBody"].clone())
        .collect();
    assert_eq!(bodies.len(), 2, "{bodies:?}");
    assert_eq!(bodies[0], bodies[1]);
}

#[test]
fn an_invalid_registration_is_rejected() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("bad.json"), r#"{"name":"bad"}"#).unwrap();
    let environment = environment(directory.path(), &AwsServer::start());
    assert_rejects(BINARY, &environment, &[("UNUSED", None)]);
}
