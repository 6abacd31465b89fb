//! Use cases of sensors on the store in memory.

use std::sync::Arc;
use std::time::Duration;

use antumbra_service::clock::{Clock, ManualClock};
use antumbra_service::sensors::{
    Address, Connection, Location, LocationPrefix, Reading, SensorError, SensorPatch, SensorQuery,
    Sensors, SilenceTimeout, Value, Version,
};
use antumbra_testkit::sensors::MemorySensors;
use antumbra_testkit::sensors::sample::{at, id, sensor, somewhere};
use futures_util::future::join_all;

fn sensors() -> Sensors<MemorySensors> {
    Sensors::with_clock(MemorySensors::default(), Arc::new(ManualClock::new(at(0))))
}

#[tokio::test]
async fn a_sensor_is_registered_moved_changed_and_unregistered() {
    let sensors = sensors();
    let first = sensors.register(somewhere("s")).await.unwrap();
    assert_eq!((first.version, first.registered_at), (Version(1), at(0)));
    let there = Location::new("Łódź", "B", "-1", "garage").unwrap();
    let moved = sensors
        .move_to(&id("s"), there.clone(), None)
        .await
        .unwrap();
    assert_eq!(
        (moved.version, moved.sensor.location.as_ref()),
        (Version(2), Some(&there))
    );
    let patch = SensorPatch {
        silence_after: Some(SilenceTimeout::seconds(60).unwrap()),
        ..SensorPatch::default()
    };
    let updated = sensors
        .update(&id("s"), patch.clone(), Some(Version(2)))
        .await
        .unwrap();
    assert_eq!(
        (updated.version, updated.sensor.location.as_ref()),
        (Version(3), Some(&there))
    );
    let again = sensors.update(&id("s"), patch, None).await.unwrap();
    assert_eq!(again, updated, "what changes nothing is not written");
    let place = LocationPrefix::new("Łódź", None, None, None).unwrap();
    assert_eq!(
        sensors
            .list(&SensorQuery::in_place(place.clone()), 10, None)
            .await
            .unwrap()
            .rows
            .len(),
        1
    );
    sensors
        .unregister(&id("s"), Some(Version(3)))
        .await
        .unwrap();
    assert_eq!(sensors.get(&id("s")).await, Err(SensorError::NotFound));
}

#[tokio::test]
async fn an_unexpected_version_is_a_conflict() {
    let sensors = sensors();
    sensors.register(somewhere("s")).await.unwrap();
    let conflict = SensorError::Conflict {
        expected: Version(7),
        actual: Version(1),
    };
    let there = Location::new("a", "b", "c", "d").unwrap();
    let moved = sensors.move_to(&id("s"), there, Some(Version(7))).await;
    assert_eq!(moved, Err(conflict.clone()));
    assert_eq!(
        sensors.unregister(&id("s"), Some(Version(7))).await,
        Err(conflict)
    );
}

#[tokio::test]
async fn writers_without_an_expected_version_all_succeed() {
    let sensors = sensors();
    sensors.register(somewhere("s")).await.unwrap();
    let changes = (0..5).map(|n| {
        let patch = SensorPatch {
            address: Some(Address::new(format!("address {n}")).unwrap()),
            ..SensorPatch::default()
        };
        let sensors = &sensors;
        async move { sensors.update(&id("s"), patch, None).await.unwrap() }
    });
    join_all(changes).await;
    assert_eq!(sensors.get(&id("s")).await.unwrap().version, Version(6));
}

#[tokio::test]
async fn readings_need_a_sensor_and_at_most_ten_are_returned() {
    let sensors = sensors();
    let reading = |n: i64| Reading::new(Value::whole(n), None, at(n), None).unwrap();
    let unregistered = sensors.save(&id("s"), &[reading(1)]).await;
    assert_eq!(unregistered, Err(SensorError::NotFound));
    sensors
        .register(sensor("s", ["a", "b", "c", "d"]))
        .await
        .unwrap();
    let many: Vec<Reading> = (0..30).map(reading).collect();
    sensors.save(&id("s"), &many).await.unwrap();
    let (_, latest) = sensors.latest(&id("s"), None, None).await.unwrap();
    assert_eq!(latest.rows.len(), 10);
    let (_, some) = sensors
        .between(&id("s"), at(3), at(5), 10, None)
        .await
        .unwrap();
    assert_eq!(some.rows, many[3..5]);
}

#[tokio::test]
async fn a_saved_reading_is_a_contact_and_the_state_if_it_is_the_newest() {
    let clock = Arc::new(ManualClock::new(at(0)));
    let sensors = Sensors::with_clock(MemorySensors::default(), Arc::clone(&clock) as _);
    sensors.register(somewhere("s")).await.unwrap();
    let reading = |n: i64, time: i64| Reading::new(Value::whole(n), None, at(time), None).unwrap();
    clock.advance(Duration::from_secs(3000));
    let batch = [reading(1, 2990), reading(3, 2999), reading(2, 2995)];
    sensors.save(&id("s"), &batch).await.unwrap();
    let state = sensors.state(&id("s")).await.unwrap();
    assert_eq!(state.value, Some(Value::whole(3)));
    assert_eq!(
        (state.connection, state.last_seen),
        (Connection::Online, Some(at(3000)))
    );
    // An old reading is a contact only.
    clock.advance(Duration::from_secs(3000));
    sensors.save(&id("s"), &[reading(7, 100)]).await.unwrap();
    let state = sensors.state(&id("s")).await.unwrap();
    assert_eq!(
        (state.value, state.last_seen),
        (Some(Value::whole(3)), Some(at(6000)))
    );
    // A clock far ahead does not make later readings stale.
    sensors
        .save(&id("s"), &[reading(8, 1_000_000)])
        .await
        .unwrap();
    clock.advance(Duration::from_secs(10));
    sensors.save(&id("s"), &[reading(9, 6010)]).await.unwrap();
    let state = sensors.state(&id("s")).await.unwrap();
    assert_eq!(state.value, Some(Value::whole(9)));
}

#[tokio::test]
async fn of_many_registrations_at_once_one_creates_the_sensor() {
    let sensors = Sensors::with_clock(MemorySensors::default(), Arc::new(ManualClock::new(at(0))));
    let all = join_all((0..12).map(|_| sensors.register(somewhere("s")))).await;
    let refused = Err(SensorError::AlreadyRegistered);
    let created = all.into_iter().filter(|result| *result != refused);
    assert_eq!(created.count(), 1);
    let (same, created) = sensors.put(somewhere("s")).await.unwrap();
    assert_eq!((same.version, created), (Version(1), false));
    let elsewhere = sensor("s", ["a", "b", "c", "d"]);
    let (moved, created) = sensors.put(elsewhere).await.unwrap();
    assert_eq!((moved.version, created), (Version(2), false));
    assert!(sensors.put(somewhere("t")).await.unwrap().1);
}

/// Even at the same time, the second registration differs from the first.
#[tokio::test]
async fn a_sensor_registered_again_has_another_generation() {
    let clock = ManualClock::new(at(0));
    let sensors = Sensors::with_clock(MemorySensors::default(), Arc::new(clock));
    let first = sensors.register(somewhere("s")).await.unwrap();
    sensors.unregister(&id("s"), None).await.unwrap();
    let second = sensors.register(somewhere("s")).await.unwrap();
    assert_ne!(first.generation, second.generation);
    assert_eq!(
        ManualClock::new(at(0)).now().after(Duration::ZERO),
        second.registered_at
    );
}
