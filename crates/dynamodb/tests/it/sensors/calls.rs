//! Calls of each operation, counted at the endpoint.

use antumbra_dynamodb::DynamoDbSensors;
use antumbra_service::sensors::{
    CheckOutcome, LivenessIndex, LocationPrefix, Reading, ReadingStore, SensorError, SensorQuery,
    SensorStore, StateStore, Value,
};
use antumbra_testkit::sensors::sample::{at, id, new, registered, sensor, signal, somewhere};

use crate::store::{Store, sensors};

const WRITES: [&str; 2] = ["UpdateItem", "BatchWriteItem"];

/// Records signals and saves readings as the ingest function does.
async fn ingest(store: &Store<DynamoDbSensors>, signals: &[antumbra_service::sensors::Signal]) {
    let mut readings = Vec::new();
    for signal in signals {
        let recorded = store.record(signal).await.unwrap().unwrap();
        readings.push(signal.reading(recorded.owner));
    }
    for saved in store.save_readings(&readings).await {
        saved.unwrap();
    }
}

#[tokio::test]
async fn a_signal_is_two_writes_and_no_read() {
    let store = sensors().await;
    registered(&*store, "s").await;
    store.endpoint.take_calls();
    for (value, time) in [(1, 1), (1, 2), (0, 3), (1, 4), (1, 5)] {
        ingest(&store, &[signal("s", value, time, time)]).await;
        assert_eq!(store.operations(), WRITES);
    }
    // A lost sensor that sends again costs the same.
    assert_eq!(
        store.check(&id("s"), at(9000)).await,
        Ok(CheckOutcome::Lost)
    );
    store.endpoint.take_calls();
    ingest(&store, &[signal("s", 0, 9001, 9001)]).await;
    assert_eq!(store.operations(), WRITES);
    // A duplicate too; a signal that was overtaken costs one more write if part of it is newer.
    ingest(&store, &[signal("s", 0, 9001, 9001)]).await;
    assert_eq!(store.operations(), WRITES);
    ingest(&store, &[signal("s", 1, 100, 100)]).await;
    assert_eq!(store.operations(), WRITES);
    for late in [signal("s", 1, 101, 9002), signal("s", 1, 9002, 9000)] {
        ingest(&store, &[late]).await;
        let calls = store.operations();
        assert_eq!(calls, ["UpdateItem", "UpdateItem", "BatchWriteItem"]);
    }
}

#[tokio::test]
async fn readings_of_a_batch_share_their_calls() {
    let store = sensors().await;
    let mut signals = Vec::new();
    for n in 0..60 {
        registered(&*store, &format!("s{n}")).await;
        signals.push(signal(&format!("s{n}"), 1, n, n));
    }
    store.endpoint.take_calls();
    ingest(&store, &signals).await;
    let calls = store.operations();
    let updates = calls.iter().filter(|call| *call == "UpdateItem").count();
    let batches = calls
        .iter()
        .filter(|call| *call == "BatchWriteItem")
        .count();
    assert_eq!((updates, batches, calls.len()), (60, 3, 63));
}

/// Ten signals in an hour and a sweep each minute: only the sweep writes the index key, once.
#[tokio::test]
async fn the_index_is_written_once_per_silence() {
    let store = sensors().await;
    registered(&*store, "s").await;
    ingest(&store, &[signal("s", 1, 1, 1)]).await;
    let hour = 3600;
    let mut keys_written = 0;
    let mut last = store.state(&id("s")).await.unwrap().check_at;
    for minute in 1..=10 * 60 {
        let now = minute * 60;
        if minute % 6 == 0 {
            ingest(&store, &[signal("s", minute % 2, now, now)]).await;
        }
        for shard in 0..store.shards() {
            let due = store.due(shard, at(now), 100, None).await.unwrap();
            for sensor in due.rows {
                let checked = store.check(&sensor, at(now)).await;
                assert_eq!(checked, Ok(CheckOutcome::Rearmed));
            }
        }
        let check_at = store.state(&id("s")).await.unwrap().check_at;
        keys_written += usize::from(check_at != last);
        last = check_at;
    }
    let hours = 10 * 60 * 60 / hour;
    assert!(
        (hours..=hours + 1).contains(&keys_written),
        "{keys_written}"
    );
}

#[tokio::test]
async fn calls_of_the_registry() {
    let store = sensors().await;
    let sensors = &*store;
    let first = registered(sensors, "s").await;
    assert_eq!(store.operations(), ["TransactWriteItems"]);
    let again = sensors.register(&new(somewhere("s"))).await;
    assert_eq!(again, Err(SensorError::AlreadyRegistered));
    assert_eq!(store.operations(), ["TransactWriteItems"]);
    let there = sensor("s", ["Łódź", "A", "2", "13"]);
    let moved = sensors.change(&first, &there, at(1)).await.unwrap();
    assert_eq!(store.operations(), ["PutItem"], "a move is one write");
    let reading = Reading::new(Value::whole(1), None, at(0), None).unwrap();
    sensors.save(&moved, &[reading]).await.unwrap();
    assert_eq!(store.operations(), ["TransactWriteItems"]);
    sensors.latest(&id("s"), 10).await.unwrap();
    assert_eq!(store.operations(), ["Query"], "sensor and readings in one");
    let place = LocationPrefix::new("Łódź", None, None, None).unwrap();
    sensors
        .list(&SensorQuery::in_place(place.clone()), 100, None)
        .await
        .unwrap();
    assert_eq!(store.operations(), ["Query", "BatchGetItem"]);
}

#[tokio::test]
async fn a_page_of_many_sensors_reads_their_states_in_hundreds() {
    let store = sensors().await;
    for n in 0..130 {
        registered(&*store, &format!("s{n}")).await;
    }
    store.endpoint.take_calls();
    let place = LocationPrefix::new("Poznań", None, None, None).unwrap();
    let page = store
        .list(&SensorQuery::in_place(place.clone()), 1000, None)
        .await
        .unwrap();
    assert!(page.rows.iter().all(|row| row.state.is_some()) && page.rows.len() == 130);
    let calls = store.operations();
    assert_eq!(calls, ["Query", "BatchGetItem", "BatchGetItem"]);
}
