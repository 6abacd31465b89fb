//! The sweep on DynamoDB: each lost sensor is found once, with few calls.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use antumbra_dynamodb::{DynamoDbProgress, DynamoDbSensors, MAIN, SensorConfig};
use antumbra_liveness_sweep::Sweeper;
use antumbra_service::clock::{Clock, ManualClock};
use antumbra_service::liveness::{Limits, SweepGroup};
use antumbra_service::sensors::{Connection, Reading, ReadingStore, SensorStore, Value};
use antumbra_testkit::dynamodb::TestTable;
use antumbra_testkit::sensors::sample::{at, record, registered, signal, state};
use aws_sdk_dynamodb::types::AttributeValue;
use futures_util::future::join;

const SENSORS: usize = 300;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_concurrent_sweeps_lose_each_sensor_once_with_one_write() {
    let table = TestTable::create(MAIN).await;
    let sensors = DynamoDbSensors::new(table.client.clone(), SensorConfig::new(&table.name));
    for n in 0..SENSORS {
        let name = format!("s{n}");
        registered(&sensors, &name).await;
        record(&sensors, &signal(&name, 1, 60, 60)).await;
    }
    let sweep = async |seconds: i64| {
        let progress = DynamoDbProgress::new(table.client.clone(), &table.name);
        let clock = Arc::new(ManualClock::new(at(seconds)));
        let limits = Limits {
            at_once: 8,
            page: 7,
            page_period: Duration::ZERO,
        };
        let sweeper = Sweeper::new(sensors.clone(), progress, None, limits, clock);
        let deadline = at(seconds).after(Duration::from_secs(50));
        sweeper.sweep(SweepGroup::ALL, deadline).await.unwrap()
    };
    table.endpoint.take_calls();
    // Due since their registration, with a signal since: rearmed for the exact deadline.
    let report = sweep(3600).await;
    assert_eq!(
        (report.rearmed, report.lost, report.finished),
        (SENSORS, 0, true)
    );
    assert_eq!(sweep(3659).await.checked, 0);

    // Sensors with a new signal stay online; each of the others is found lost by one of two sweeps.
    for n in 0..100 {
        record(&sensors, &signal(&format!("s{n}"), 1, 3000, 3000)).await;
    }
    table.endpoint.take_calls();
    let (one, two) = join(sweep(3660), sweep(3660)).await;
    assert_eq!(one.lost + two.lost, SENSORS - 100);
    assert!(one.finished && two.finished);
    for n in 0..SENSORS {
        let connection = state(&sensors, &format!("s{n}")).await.connection;
        let expected = if n < 100 {
            Connection::Online
        } else {
            Connection::Lost
        };
        assert_eq!(connection, expected, "s{n}");
    }
    let mut calls: BTreeMap<String, usize> = BTreeMap::new();
    for call in table.endpoint.take_operations() {
        *calls.entry(call).or_default() += 1;
    }
    eprintln!("two sweeps of {SENSORS} due sensors: {calls:?}, {one:?}, {two:?}");
    assert_eq!(sweep(3700).await.checked, 0, "once per outage");
}

/// A sensor that was unregistered leaves its readings to the sweeps that follow.
#[tokio::test]
async fn data_of_an_unregistered_sensor_is_purged_within_an_hour() {
    let table = TestTable::create(MAIN).await;
    let sensors = DynamoDbSensors::new(table.client.clone(), SensorConfig::new(&table.name));
    let gone = registered(&sensors, "gone").await;
    let readings: Vec<Reading> = (0..60)
        .map(|n| Reading::new(Value::whole(n), None, at(n), None).unwrap())
        .collect();
    sensors.save(&gone, &readings).await.unwrap();
    sensors.unregister(&gone, at(100)).await.unwrap();

    let left = async || {
        let query = table.client.query().table_name(&table.name);
        let query = query.consistent_read(true);
        let found = query
            .key_condition_expression("PK = :pk")
            .expression_attribute_values(":pk", AttributeValue::S("SENSOR#gone".to_owned()))
            .send();
        found.await.unwrap().count
    };
    assert_eq!(left().await, 61, "the readings and the purge");
    let clock = Arc::new(ManualClock::new(at(120)));
    let progress = DynamoDbProgress::new(table.client.clone(), &table.name);
    let limits = Limits::default();
    let sweeper = Sweeper::new(sensors, progress, None, limits, clock.clone());
    let sweep = async || {
        let deadline = clock.now().after(Duration::from_secs(50));
        sweeper.purge(deadline).await;
    };
    sweep().await;
    assert_eq!(
        left().await,
        1,
        "the purge, for readings that are still being written"
    );
    clock.advance(Duration::from_secs(3600));
    sweep().await;
    assert_eq!(left().await, 0);
}
