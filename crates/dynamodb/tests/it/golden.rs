//! Stored form of every item kind: items written through the ports equal those in `testdata/`.

use std::collections::BTreeMap;

use antumbra_dynamodb::{
    DynamoDbClients, DynamoDbDeliveries, DynamoDbIdempotency, DynamoDbInbox, DynamoDbProgress,
    DynamoDbSensors, DynamoDbSettings, DynamoDbShadows, DynamoDbSuspensions, MAIN, MESSAGES,
    SECRETS, SensorConfig, ShadowTableConfig, TableDefinition, TableSettings, secrets_table,
};
use antumbra_service::clients::{
    Circuit, Client, ClientId, ClientState, ClientStore as _, LinkStore as _, Mode, RequestKey,
    Rotation, Secret,
};
use antumbra_service::deliveries::{
    Attempt, Claim, Delivery, DeliveryId, DeliveryStore as _, EventType, History as _,
    NewDeliveries as _, SensorRef, Status, Transition, Wait,
};
use antumbra_service::idempotency::Request;
use antumbra_service::inbox::{
    Body, InboxMessage, MessageDeleter as _, MessageId, MessageWriter as _, Source,
    SourceTracker as _,
};
use antumbra_service::liveness::IngestProgress as _;
use antumbra_service::notifications::suspension::{
    SpilledKey, Suspension, SuspensionState, Suspensions as _,
};
use antumbra_service::sensors::{
    Address, Generation, LivenessIndex as _, Location, Reading, ReadingStore as _, ReadingTime,
    RegisteredSensor, Sensor, SensorId, SensorStore as _, Sequence, Signal, SilenceTimeout,
    StateStore as _, Unit, Value, Version,
};
use antumbra_service::shadows::{
    ClientToken, Delete, ExpectedVersion, Layout, NewDocument, ShadowId, ShadowStore as _,
    Version as DocumentVersion, Write, Zone,
};
use antumbra_shadow::{Document, LeafTimes, Timestamp};
use antumbra_testkit::dynamodb::TestTable;
use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::value::RawValue;
use serde_json::{Value as Json, json};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const OTHER_SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

fn at(milliseconds: i128) -> Timestamp {
    Timestamp::from_nanoseconds((1_700_000_000_000 + milliseconds) * 1_000_000)
}

fn as_json(value: &AttributeValue) -> Json {
    match value {
        AttributeValue::S(text) if text.len() > 1000 => json!({ "S bytes": text.len() }),
        AttributeValue::S(text) => json!({ "S": text }),
        AttributeValue::N(number) => json!({ "N": number }),
        AttributeValue::Bool(value) => json!({ "BOOL": value }),
        AttributeValue::Null(value) => json!({ "NULL": value }),
        AttributeValue::L(list) => json!({ "L": list.iter().map(as_json).collect::<Vec<_>>() }),
        AttributeValue::M(map) => {
            let members: BTreeMap<_, _> = map.iter().map(|(k, v)| (k, as_json(v))).collect();
            json!({ "M": members })
        }
        other => panic!("no item of ours has {other:?}"),
    }
}

async fn check(database: &aws_sdk_dynamodb::Client, table: &TableDefinition<'_>, file: &str) {
    let pages = database.scan().table_name(table.name).into_paginator();
    let items: Vec<_> = pages
        .items()
        .send()
        .collect::<Result<_, _>>()
        .await
        .unwrap();
    let mut stored = BTreeMap::new();
    for item in items {
        let key = [table.partition_key, table.sort_key].map(|name| item[name].as_s().unwrap());
        let attributes: BTreeMap<_, _> = item.iter().map(|(k, v)| (k, as_json(v))).collect();
        stored.insert(key.map(String::as_str).join(" / "), json!(attributes));
    }
    let stored = serde_json::to_string_pretty(&stored).unwrap() + "\n";
    let expected = format!("{}/testdata/{file}", env!("CARGO_MANIFEST_DIR"));
    let expected = std::fs::read_to_string(expected).unwrap_or_default();
    if stored != expected {
        let actual = format!("{}/{file}", env!("CARGO_TARGET_TMPDIR"));
        std::fs::write(&actual, &stored).unwrap();
        panic!("the stored items differ from testdata/{file}; they are in {actual}");
    }
}

#[tokio::test]
async fn stored_items_of_the_main_table_keep_their_form() {
    let TestTable {
        client: database,
        name,
        ..
    } = TestTable::create(MAIN).await;

    write_shadows(&database, &name).await;
    write_sensors(&database, &name).await;
    write_clients(&database, &name).await;
    write_deliveries(&database, &name).await;
    write_idempotency_records(&database, &name).await;
    let progress = DynamoDbProgress::new(database.clone(), &name);
    progress.note("signals", at(5)).await.unwrap();
    write_suspensions(&database, &name).await;
    let settings = DynamoDbSettings::new(database.clone(), &name);
    settings.ensure(&TableSettings::default()).await.unwrap();
    check(
        &database,
        &TableDefinition {
            name: &name,
            ..MAIN
        },
        "main-table.json",
    )
    .await;
    let secrets = TableDefinition {
        name: &secrets_table(&name),
        ..SECRETS
    };
    check(&database, &secrets, "secrets-table.json").await;
}

async fn write_suspensions(database: &aws_sdk_dynamodb::Client, table: &str) {
    let suspensions = DynamoDbSuspensions::new(database.clone(), table);
    let failing = Suspension::after_failure(None, "failing", at(0));
    suspensions.save(&failing).await.unwrap();
    let suspended = Suspension {
        registration: "suspended".to_owned(),
        state: SuspensionState::Suspended,
        failures: 5,
        ..failing
    };
    suspensions.save(&suspended).await.unwrap();
    suspensions.touch("suspended").await.unwrap();
    let key = SpilledKey {
        registration: "suspended".to_owned(),
        key: "0123456789abcdef".to_owned(),
    };
    let marks = [(key, "last".to_owned())];
    suspensions.mark(&marks, at(60_000)).await.unwrap();
}

async fn write_shadows(database: &aws_sdk_dynamodb::Client, table: &str) {
    let document = |json: &str, times: bool| {
        let document = Document::parse(json).unwrap();
        Some(NewDocument {
            times: times.then(|| {
                LeafTimes::all(
                    &document,
                    Timestamp::from_nanoseconds(1_600_000_000_123_456_000),
                )
            }),
            document,
            expected: DocumentVersion::NONE,
            min_version: DocumentVersion::NONE,
            expected_times: 0,
            times_only: false,
            zone: times.then(|| Zone::new("Europe/Stockholm").unwrap()),
            acknowledged: None,
        })
    };
    let write = |id: &str, times: bool| Write {
        shadow: ShadowId::named(id, "main").unwrap(),
        reported: document(
            r#"{"t":{"value":21.50,"timestamp":1700000000},"ä":[true,null]}"#,
            times,
        ),
        desired: document(r#"{"deep":{"er":{}}}"#, times),
        timestamp: at(0),
        client_token: times.then(|| ClientToken::new("token").unwrap()),
        other_version: None,
    };
    for (layout, ids) in [
        (Layout::Separate, ["My House#Lamp", "plain"]),
        (Layout::Combined, ["combined", "combined plain"]),
    ] {
        let config = ShadowTableConfig::new(table).layout(layout);
        let shadows = DynamoDbShadows::new(database.clone(), config);
        let gone = format!("deleted {layout:?}");
        let writes = [
            write(ids[0], true),
            write(ids[1], false),
            write(&gone, true),
        ];
        for written in shadows.write_many(&writes).await {
            written.unwrap();
        }
        let delete = Delete {
            shadow: writes[2].shadow.clone(),
            reported: Some(ExpectedVersion::Any),
            desired: Some(ExpectedVersion::Any),
            other_version: None,
            time: None,
        };
        for deleted in shadows.delete_many(&[delete], at(1)).await {
            deleted.unwrap();
        }
    }
}

fn sensor(id: &str) -> RegisteredSensor {
    let location = Location::new("Poznań", "A#1", "-1", "x y").unwrap();
    let mut sensor = Sensor::new(SensorId::new(id).unwrap(), location);
    sensor.address = Address::new("ul. Półwiejska 42").unwrap();
    sensor.silence_after = SilenceTimeout::seconds(90).unwrap();
    RegisteredSensor {
        sensor,
        version: Version(1),
        registered_at: at(0),
        generation: Generation::new("g-1").unwrap(),
    }
}

async fn write_sensors(database: &aws_sdk_dynamodb::Client, table: &str) {
    let config = SensorConfig {
        retention: "sensor=1".parse().unwrap(),
        ..SensorConfig::new(table)
    };
    let sensors = DynamoDbSensors::new(database.clone(), config);
    let mut registered = BTreeMap::new();
    for id in ["new", "door", "thermometer", "lost", "gone"] {
        registered.insert(id, sensors.register(&sensor(id)).await.unwrap());
    }
    let signal = |id: &str, value, time, number| {
        let id = SensorId::new(id).unwrap();
        Signal::new(id, value, Some(at(time)), number, at(time + 7), "m-1").unwrap()
    };
    for signal in [
        signal("door", Value::text("open").unwrap(), 1000, Some(1)),
        signal("door", Value::text("closed").unwrap(), 2000, Some(2)),
        signal("thermometer", Value::number("21.50").unwrap(), 1000, None),
        signal("thermometer", Value::Boolean(true), 2000, None),
    ] {
        let recorded = sensors.record(&signal).await.unwrap().unwrap();
        let reading = [signal.reading(recorded.owner)];
        assert_eq!(sensors.save_readings(&reading).await, [Ok(())]);
    }
    let reading = Reading {
        value: Value::number("7").unwrap(),
        unit: Some(Unit::new("°C").unwrap()),
        moment: ReadingTime::new(at(3000), Sequence::Number(3)).unwrap(),
        fields: Document::parse(r#"{"battery":80.5}"#).ok(),
    };
    sensors
        .save(&registered["thermometer"], &[reading])
        .await
        .unwrap();
    let lost = SensorId::new("lost").unwrap();
    sensors.check(&lost, at(600_000)).await.unwrap();
    sensors
        .unregister(&registered["gone"], at(1))
        .await
        .unwrap();
    let mut changed = registered["new"].sensor.clone();
    changed.address = Address::new("elsewhere").unwrap();
    changed.silence_after = SilenceTimeout::seconds(30).unwrap();
    sensors
        .change(&registered["new"], &changed, at(2))
        .await
        .unwrap();
}

fn client_id(id: &str) -> ClientId {
    ClientId::new(id).unwrap()
}

async fn write_clients(database: &aws_sdk_dynamodb::Client, table: &str) {
    let clients = DynamoDbClients::new(database.clone(), table);
    let deliveries = DynamoDbDeliveries::new(database.clone(), table);
    let requested = |by: &str| RequestKey {
        by: by.to_owned(),
        until: at(10_000),
    };
    for (id, mode) in [("alarm", Mode::Every), ("chart", Mode::Latest)] {
        let client = Client {
            id: client_id(id),
            name: format!("The {id}"),
            url: "https://hooks.example/in".to_owned(),
            mode,
            state: ClientState::Enabled,
            circuit: Circuit::default(),
            version: Version(1),
            created: at(0),
            updated: at(0),
        };
        let secret = Secret::new(SECRET).unwrap();
        let request = requested("create");
        clients.create(&client, &secret, &request).await.unwrap();
        let door = SensorId::new("door").unwrap();
        clients.link(&client.id, &door, at(1)).await.unwrap();
    }
    let rotation = Rotation {
        secret: Secret::new(OTHER_SECRET).unwrap(),
        previous_until: at(5000),
        requested: requested("rotate"),
        now: at(2),
    };
    clients
        .rotate(&client_id("chart"), &rotation)
        .await
        .unwrap();
    let disabled = ClientState::Disabled {
        reason: "too slow".to_owned(),
        since: at(3),
    };
    let chart = client_id("chart");
    clients.set_state(&chart, &disabled, at(3)).await.unwrap();
    let failure = deliveries.record_failure(&chart, 2, Some(at(9)), at(8));
    failure.await.unwrap();
}

async fn write_deliveries(database: &aws_sdk_dynamodb::Client, table: &str) {
    let deliveries = DynamoDbDeliveries::new(database.clone(), table);
    let delivery = |event_type: EventType, sensor: Option<&str>| Delivery {
        id: DeliveryId::new(&client_id("alarm"), at(1), 7, sensor.unwrap_or("test")),
        event_type,
        sequence: 7,
        number: 3,
        occurred_at: at(1),
        sensor: sensor.map(|id| SensorRef {
            id: SensorId::new(id).unwrap(),
            address: "Poznań".to_owned(),
            generation: Generation::new("g-1").unwrap(),
        }),
        data: RawValue::from_string(r#"{"current":1.50}"#.to_owned()).unwrap(),
    };
    let attempt = |number: u32, status: Option<u16>| Attempt {
        at: at(i128::from(number)),
        round: 0,
        number,
        status,
        latency_ms: 12,
        error: status.is_none().then(|| "no connection".to_owned()),
    };
    let test = delivery(EventType::ClientTest, None);
    for (sensor, second) in [
        ("door", (Status::Delivered, None)),
        ("lamp", (Status::Failed, Some(Wait::Due(at(900))))),
        ("gate", (Status::Held, Some(Wait::Held))),
    ] {
        let new = delivery(EventType::StateChanged, Some(sensor));
        deliveries.add(&new, at(1)).await.unwrap();
        let first = (Status::Failed, Some(Wait::Due(at(2))));
        for (number, (status, wait)) in (1..).zip([first, second]) {
            let record = deliveries.get(&new.id).await.unwrap().unwrap();
            let message = record.message();
            let context = deliveries.context(&message).await.unwrap();
            let claim = Claim {
                record: &record,
                message: &message,
                attempt: number,
                token: "token",
                until: at(30),
                interrupted: None,
                now: at(i128::from(number)),
            };
            assert!(deliveries.claim(&claim).await.unwrap());
            let status_code = (number == 2).then_some(204);
            let transition = Transition {
                context: &context,
                record: &record,
                message: &message,
                claim: Some("token"),
                status,
                attempts: vec![attempt(number, status_code)],
                wait,
                in_order: true,
                now: at(i128::from(number)),
            };
            deliveries.save(&transition).await.unwrap();
        }
    }
    deliveries.add(&test, at(3)).await.unwrap();
    let test = deliveries.get(&test.id).await.unwrap().unwrap();
    deliveries
        .requeued(&test.next_round(true), at(4))
        .await
        .unwrap();
}

async fn write_idempotency_records(database: &aws_sdk_dynamodb::Client, table: &str) {
    let store = DynamoDbIdempotency::new(database.clone(), table);
    for (key, response) in [
        ("running", None),
        ("done", Some("short".to_owned())),
        ("large", Some("x".repeat(700 * 1024))),
    ] {
        let request = Request {
            key: key.to_owned(),
            fingerprint: "print".to_owned(),
            owner: "owner".to_owned(),
            now: at(0),
            lease_ends: at(30_000),
            forget_at: at(86_400_000),
        };
        store.begin(&request).await.unwrap();
        if let Some(response) = response {
            store.finish(&request, &response).await.unwrap();
        }
    }
}

#[tokio::test]
async fn stored_items_of_the_messages_table_keep_their_form() {
    let TestTable {
        client: database,
        name,
        ..
    } = TestTable::create(MESSAGES).await;
    let inbox = DynamoDbInbox::new(database.clone(), &name);
    let source = Source::new("door-1").unwrap();
    for (id, body, expires_at) in [
        ("1-a", r#"{"n":72.50,"list":[1,null]}"#, None),
        ("2-b", r#"{"n":1}"#, Some(at(1_000_000))),
        ("3-c", r#"{"n":2}"#, None),
    ] {
        let message = InboxMessage {
            source: source.clone(),
            id: MessageId::new(id).unwrap(),
            body: Body::parse(body).unwrap(),
            received_at: at(0),
            expires_at,
        };
        inbox.store(&message).await.unwrap();
    }
    let deleted = MessageId::new("3-c").unwrap();
    inbox.delete(&source, &deleted, at(1)).await.unwrap();
    inbox.touch(&source, at(1)).await.unwrap();
    check(
        &database,
        &TableDefinition {
            name: &name,
            ..MESSAGES
        },
        "messages-table.json",
    )
    .await;
}
