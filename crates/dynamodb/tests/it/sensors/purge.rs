//! Unregistering a sensor and purging its readings.

use std::cell::Cell;

use antumbra_service::clock::{Clock, ManualClock};
use antumbra_service::purges::{Purge, PurgeQueue, purge_due};
use antumbra_service::sensors::{
    Address, Owner, Reading, ReadingStore, RegisteredSensor, SensorError, SensorStore, StateStore,
    Value, Version,
};
use antumbra_testkit::dynamodb::Reply;
use antumbra_testkit::sensors::sample::{at, id, registered, signal};
use std::time::Duration;

use super::{put, sort_keys};
use crate::store::sensors;

fn readings(count: i64) -> Vec<Reading> {
    let reading = |n| Reading::new(Value::whole(n), None, at(n), None).unwrap();
    (0..count).map(reading).collect()
}

/// Stores the reading of a signal that a function recorded before the sensor was unregistered.
async fn save_late(store: &impl StateStore, sensor: &RegisteredSensor) {
    let owner = Owner {
        sensor: id("s"),
        generation: sensor.generation.clone(),
        sensor_type: sensor.sensor.sensor_type.clone(),
    };
    let late = signal("s", 1, 99, 99).reading(owner);
    assert_eq!(store.save_readings(&[late]).await, [Ok(())]);
}

fn is_removal(sort_key: &str) -> bool {
    sort_key.starts_with("CLIENTREMOVED#")
}

#[tokio::test]
async fn links_and_their_mirrors_are_removed_with_the_sensor() {
    let store = sensors().await;
    let sensor = registered(&*store, "s").await;
    registered(&*store, "s2").await;
    // More than fit in one transaction.
    for n in 0..120 {
        put(&store, "SENSOR#s", &format!("CLIENT#c{n}")).await;
        put(&store, &format!("CLIENT#c{n}"), "SENSOR#s").await;
    }
    put(&store, "SENSOR#s2", "CLIENT#c7").await;
    put(&store, "CLIENT#c7", "SENSOR#s2").await;
    store.unregister(&sensor, at(1)).await.unwrap();
    let left = sort_keys(&store, "SENSOR#s").await;
    let (removed, left): (Vec<_>, Vec<_>) = left.into_iter().partition(|key| is_removal(key));
    assert_eq!(left, [format!("PURGE#{}", sensor.generation.as_str())]);
    assert_eq!(removed.len(), 120, "for the listener");
    assert_eq!(sort_keys(&store, "CLIENT#c7").await, ["SENSOR#s2"]);
    assert_eq!(sort_keys(&store, "CLIENT#c119").await, Vec::<String>::new());
    assert_eq!(sort_keys(&store, "SENSOR#s2").await.len(), 3);
}

/// A link that is created between the query for links and the transaction is removed after it.
#[tokio::test]
async fn a_concurrent_link_is_removed() {
    let store = sensors().await;
    let sensor = registered(&*store, "s").await;
    store.endpoint.take_calls();
    // The first query does not see the link.
    put(&store, "SENSOR#s", "CLIENT#c").await;
    put(&store, "CLIENT#c", "SENSOR#s").await;
    let nothing = serde_json::json!({"Items": [], "Count": 0, "ScannedCount": 0});
    store
        .endpoint
        .script_next("Query", [Reply::Respond(200, nothing)]);
    store.unregister(&sensor, at(1)).await.unwrap();
    let left = sort_keys(&store, "SENSOR#s").await;
    assert_eq!(left.len(), 2, "the purge and the removal of the link");
    assert!(sort_keys(&store, "CLIENT#c").await.is_empty());
}

#[tokio::test]
async fn unregistering_another_version_removes_no_link() {
    let store = sensors().await;
    let sensor = registered(&*store, "s").await;
    for n in 0..60 {
        put(&store, "SENSOR#s", &format!("CLIENT#c{n}")).await;
        put(&store, &format!("CLIENT#c{n}"), "SENSOR#s").await;
    }
    let mut moved = sensor.sensor.clone();
    moved.address = Address::new("elsewhere").unwrap();
    store.change(&sensor, &moved, at(1)).await.unwrap();
    let unregistered = store.unregister(&sensor, at(2)).await;
    assert_eq!(
        unregistered,
        Err(SensorError::Conflict {
            expected: Version(1),
            actual: Version(2)
        })
    );
    assert_eq!(sort_keys(&store, "SENSOR#s").await.len(), 60 + 2);
    assert_eq!(sort_keys(&store, "CLIENT#c0").await.len(), 1);

    let current = store.get(&id("s")).await.unwrap();
    store.unregister(&current, at(3)).await.unwrap();
    let mut left = sort_keys(&store, "SENSOR#s").await;
    left.retain(|key| !is_removal(key));
    assert_eq!(left.len(), 1, "only the purge");
    assert!(sort_keys(&store, "CLIENT#c59").await.is_empty());
}

#[tokio::test]
async fn readings_are_purged_in_the_background_and_the_purge_ends() {
    let store = sensors().await;
    let sensor = registered(&*store, "s").await;
    let other = registered(&*store, "other").await;
    store.save(&sensor, &readings(70)).await.unwrap();
    store.save(&other, &readings(3)).await.unwrap();
    let clock = ManualClock::new(at(100));
    store.unregister(&sensor, clock.now()).await.unwrap();
    let ended = purge_due(&*store, &clock, || true).await.unwrap();
    assert_eq!(ended, 0, "it is kept for a while");
    assert_eq!(sort_keys(&store, "SENSOR#s").await.len(), 1);

    save_late(&*store, &sensor).await;
    assert_eq!(sort_keys(&store, "SENSOR#s").await.len(), 2);
    clock.advance(Duration::from_secs(3600));
    assert_eq!(purge_due(&*store, &clock, || true).await, Ok(1));
    assert!(
        sort_keys(&store, "SENSOR#s").await.is_empty(),
        "nothing is left"
    );
    assert_eq!(store.due_purges(clock.now(), 10).await, Ok(vec![]));
    let (_, kept) = store.latest(&id("other"), 10).await.unwrap();
    assert_eq!(kept.len(), 3);
}

/// The id is registered again while its former readings exist, and once more during the purge.
#[tokio::test]
async fn a_purge_keeps_the_readings_of_the_next_sensor_of_that_id() {
    let store = sensors().await;
    let first = registered(&*store, "s").await;
    store.save(&first, &readings(40)).await.unwrap();
    store.unregister(&first, at(50)).await.unwrap();
    let second = registered(&*store, "s").await;
    let new: Vec<Reading> = readings(80).split_off(30);
    store.save(&second, &new).await.unwrap();
    put(&store, "SENSOR#s", "CLIENT#c").await;
    let (_, latest) = store.latest(&id("s"), 1000).await.unwrap();
    assert_eq!(
        latest.len(),
        50,
        "of which ten have the very keys of former ones"
    );

    let clock = ManualClock::new(at(60));
    purge_due(&*store, &clock, || true).await.unwrap();
    clock.advance(Duration::from_secs(3600));
    assert_eq!(purge_due(&*store, &clock, || true).await, Ok(1));
    let newest_first: Vec<Reading> = new.into_iter().rev().collect();
    let latest = store.latest(&id("s"), 1000).await.unwrap();
    assert_eq!(latest, (second, newest_first));
    let sorts = sort_keys(&store, "SENSOR#s").await;
    assert!(
        sorts.contains(&"CLIENT#c".to_owned()),
        "links are the new sensor's"
    );
    assert_eq!(
        sorts.len(),
        50 + 3,
        "with the sensor, its state and its link"
    );
}

/// A function that recorded a signal before stores its reading behind the position of a purge that takes long.
#[tokio::test]
async fn a_purge_that_takes_longer_than_it_waits_examines_the_readings_again() {
    let store = sensors().await;
    let sensor = registered(&*store, "s").await;
    store.save(&sensor, &readings(1100)).await.unwrap();
    let clock = ManualClock::new(at(2000));
    store.unregister(&sensor, clock.now()).await.unwrap();
    let purge = Purge::Readings {
        sensor: id("s"),
        generation: sensor.generation.clone(),
    };
    assert_eq!(store.purge(&purge, clock.now()).await, Ok(false));
    let left = sort_keys(&store, "SENSOR#s").await.len();
    assert_eq!(left, 100 + 1, "with the purge");
    save_late(&*store, &sensor).await;
    clock.advance(Duration::from_secs(3600));
    assert_eq!(purge_due(&*store, &clock, || true).await, Ok(1));
    let left = sort_keys(&store, "SENSOR#s").await;
    assert_eq!(left, Vec::<String>::new());
}

#[tokio::test]
async fn an_interrupted_purge_continues() {
    let store = sensors().await;
    let sensor = registered(&*store, "s").await;
    store.save(&sensor, &readings(60)).await.unwrap();
    store.unregister(&sensor, at(100)).await.unwrap();
    let mut batches = 0;
    store.endpoint.script(move |call| {
        batches += usize::from(call.operation == "BatchWriteItem");
        if call.operation == "BatchWriteItem" && batches > 1 {
            Reply::fail(500, "InternalServerError")
        } else {
            Reply::Pass
        }
    });
    let clock = ManualClock::new(at(100));
    let failed = purge_due(&*store, &clock, || true).await;
    assert!(failed.unwrap_err().is_retryable());
    assert_eq!(sort_keys(&store, "SENSOR#s").await.len(), 60 - 25 + 1);
    store.endpoint.script(|_| Reply::Pass);
    clock.advance(Duration::from_secs(3600));
    assert_eq!(purge_due(&*store, &clock, || true).await, Ok(1));
    assert!(sort_keys(&store, "SENSOR#s").await.is_empty());

    let calls = Cell::new(0);
    let few = || {
        calls.set(calls.get() + 1);
        calls.get() < 3
    };
    assert_eq!(
        purge_due(&*store, &clock, few).await,
        Ok(0),
        "nothing is due"
    );
}
