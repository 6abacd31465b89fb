//! Laws of `SensorStore`.

use antumbra_service::sensors::{
    Address, Reading, SensorError, SensorType, SilenceTimeout, StoreError, Value, Version,
};
use futures_util::future::join_all;

use super::Store;
use crate::sensors::sample::{at, id, new, record, registered, sensor, signal, somewhere, state};

pub async fn a_registered_sensor_is_found<S: Store>(store: S) {
    let mut sensor = sensor("sensor-1", ["Poznań", "A", "2", "13"]);
    sensor.address = Address::new("ul. Półwiejska 42, 61-888").unwrap();
    sensor.sensor_type = SensorType::new("gas").unwrap();
    sensor.silence_after = SilenceTimeout::seconds(60).unwrap();
    let given = store.register(&new(sensor.clone())).await.unwrap();
    let found = store.get(&id("sensor-1")).await.unwrap();
    assert_eq!(found, given);
    assert_eq!((found.sensor, found.version), (sensor, Version(1)));
}

pub async fn a_second_registration_is_refused<S: Store>(store: S) {
    let request = new(somewhere("sensor-1"));
    let first = store.register(&request).await.unwrap();
    record(&store, &signal("sensor-1", 1, 1, 1)).await;
    let again = store.register(&request).await.unwrap();
    assert_eq!(again, first, "the same registration, sent again");
    let same = store.register(&new(somewhere("sensor-1"))).await;
    assert_eq!(same, Err(SensorError::AlreadyRegistered), "the same data");
    assert_eq!(state(&store, "sensor-1").await.changes, 1);

    let elsewhere = new(sensor("sensor-1", ["Poznań", "A", "2", "14"]));
    let error = store.register(&elsewhere).await.unwrap_err();
    assert_eq!(error, SensorError::AlreadyRegistered);
    assert_eq!(error.to_string(), "already registered");
    assert_eq!(store.get(&id("sensor-1")).await.unwrap(), first);
    assert_eq!(state(&store, "sensor-1").await.changes, 1);
}

/// Concurrent calls may be asked to retry.
pub async fn one_of_many_concurrent_registrations_succeeds<S: Store>(store: S) {
    let rooms: Vec<String> = (0..8).map(|room| room.to_string()).collect();
    let tries = rooms.iter().map(|room| async {
        let new = new(sensor("sensor-1", ["Poznań", "A", "2", room]));
        loop {
            match store.register(&new).await {
                Err(SensorError::Store(StoreError::Throttled)) => {}
                result => return result,
            }
        }
    });
    let results = join_all(tries).await;
    let won: Vec<_> = results
        .iter()
        .filter_map(|result| result.as_ref().ok())
        .collect();
    assert_eq!(won.len(), 1);
    assert_eq!(store.get(&id("sensor-1")).await.as_ref(), Ok(won[0]));
    let others = results.iter().filter_map(|result| result.as_ref().err());
    assert!(
        others
            .into_iter()
            .all(|error| *error == SensorError::AlreadyRegistered)
    );
}

pub async fn an_unregistered_sensor_is_not_found<S: Store>(store: S) {
    registered(&store, "sensor-1").await;
    let unknown = id("sensor");
    let stranger = new(somewhere("sensor"));
    let not_found = SensorError::NotFound;
    assert_eq!(store.get(&unknown).await.unwrap_err(), not_found);
    assert_eq!(store.state(&unknown).await.unwrap_err(), not_found);
    assert_eq!(store.latest(&unknown, 1).await.unwrap_err(), not_found);
    let between = store.between(&unknown, at(0), at(1), 1, None).await;
    assert_eq!(between.unwrap_err(), not_found);
    let elsewhere = sensor("sensor", ["a", "b", "c", "d"]);
    let changed = store.change(&stranger, &elsewhere, at(0)).await;
    assert_eq!(changed.unwrap_err(), not_found);
    let mut louder = stranger.sensor.clone();
    louder.silence_after = SilenceTimeout::seconds(1).unwrap();
    let changed = store.change(&stranger, &louder, at(0)).await;
    assert_eq!(changed.unwrap_err(), not_found);
    assert_eq!(
        store.unregister(&stranger, at(0)).await.unwrap_err(),
        not_found
    );
}

pub async fn a_change_requires_the_version_that_was_read<S: Store>(store: S) {
    let first = registered(&store, "sensor-1").await;
    let there = sensor("sensor-1", ["Łódź", "A", "2", "13"]);
    let second = store.change(&first, &there, at(1)).await.unwrap();
    assert_eq!((&second.sensor, second.version), (&there, Version(2)));
    assert_eq!(second.generation, first.generation);

    let mut renamed = first.sensor.clone();
    renamed.address = Address::new("elsewhere").unwrap();
    for after in [&renamed, &somewhere("sensor-1")] {
        let conflict = SensorError::Conflict {
            expected: Version(1),
            actual: Version(2),
        };
        assert_eq!(
            store.change(&first, after, at(1)).await.unwrap_err(),
            conflict
        );
        assert_eq!(store.unregister(&first, at(1)).await.unwrap_err(), conflict);
    }
    assert_eq!(store.get(&id("sensor-1")).await.unwrap(), second);
    assert_eq!(
        state(&store, "sensor-1").await.address,
        first.sensor.address
    );
}

pub async fn copied_attributes_of_the_state_follow_a_change<S: Store>(store: S) {
    let first = registered(&store, "sensor-1").await;
    record(&store, &signal("sensor-1", 1, 10, 10)).await;
    let before = state(&store, "sensor-1").await;
    let mut after = first.sensor.clone();
    after.address = Address::new("elsewhere").unwrap();
    after.sensor_type = SensorType::new("lock").unwrap();
    store.change(&first, &after, at(20)).await.unwrap();
    let state = state(&store, "sensor-1").await;
    assert_eq!(
        (&state.address, &state.sensor_type),
        (&after.address, &after.sensor_type)
    );
    assert_eq!(state.deadline, before.deadline);
    assert_eq!(state.check_at, before.check_at);
    assert_eq!(state.sequence(), before.sequence());
    assert_eq!(state.value, before.value);
}

pub async fn an_id_cannot_change<S: Store>(store: S) {
    let first = registered(&store, "sensor-1").await;
    let changed = store.change(&first, &somewhere("sensor-2"), at(0)).await;
    assert!(matches!(
        changed,
        Err(SensorError::Store(StoreError::Invalid(_)))
    ));
}

pub async fn unregistering_deletes_the_state<S: Store>(store: S) {
    let first = registered(&store, "sensor-1").await;
    registered(&store, "sensor-10").await;
    store.unregister(&first, at(1)).await.unwrap();
    for result in [
        store.get(&id("sensor-1")).await.err(),
        store.state(&id("sensor-1")).await.err(),
        store.latest(&id("sensor-1"), 1).await.err(),
        store.unregister(&first, at(1)).await.err(),
    ] {
        assert_eq!(result, Some(SensorError::NotFound));
    }
    assert_eq!(store.record(&signal("sensor-1", 1, 2, 2)).await, Ok(None));
    assert!(store.get(&id("sensor-10")).await.is_ok());
}

pub async fn a_sensor_registered_again_has_no_history<S: Store>(store: S) {
    let first = registered(&store, "sensor-1").await;
    record(&store, &signal("sensor-1", 1, 1, 1)).await;
    record(&store, &signal("sensor-1", 0, 2, 2)).await;
    let old = Reading::new(Value::whole(7), None, at(100_000), None).unwrap();
    store
        .save(&first, std::slice::from_ref(&old))
        .await
        .unwrap();
    store.unregister(&first, at(3)).await.unwrap();

    let second = registered(&store, "sensor-1").await;
    assert_ne!(second.generation, first.generation);
    let state = state(&store, "sensor-1").await;
    assert_eq!((state.sequence(), state.value), (0, None));
    let (found, readings) = store.latest(&id("sensor-1"), 10).await.unwrap();
    assert_eq!((found, readings), (second.clone(), vec![]));
    let new = Reading::new(Value::whole(8), None, at(50), None).unwrap();
    store
        .save(&second, std::slice::from_ref(&new))
        .await
        .unwrap();
    let (_, readings) = store.latest(&id("sensor-1"), 1).await.unwrap();
    assert_eq!(readings, std::slice::from_ref(&new));
    let all = store
        .between(&id("sensor-1"), at(0), at(200_000), 10, None)
        .await;
    assert_eq!(all.unwrap().1.rows, [new]);
    // A reading of the former registration is not saved for the new one.
    assert_eq!(store.save(&first, &[old]).await, Err(SensorError::NotFound));
}

/// Versions restart at one, so a version alone does not identify a registration.
pub async fn another_registration_with_the_same_version_is_not_changed<S: Store>(store: S) {
    let first = registered(&store, "sensor-1").await;
    store.unregister(&first, at(1)).await.unwrap();
    let second = registered(&store, "sensor-1").await;
    let there = sensor("sensor-1", ["a", "b", "c", "d"]);
    assert!(store.change(&first, &there, at(2)).await.is_err());
    assert!(store.unregister(&first, at(2)).await.is_err());
    assert_eq!(store.get(&id("sensor-1")).await.unwrap(), second);
}

pub async fn a_sensor_may_have_no_location<S: Store>(store: S) {
    let mut sensor = somewhere("sensor-1");
    sensor.location = None;
    sensor.address = Address::new("Main street 1").unwrap();
    let first = store.register(&new(sensor.clone())).await.unwrap();
    assert_eq!(store.get(&id("sensor-1")).await.unwrap().sensor, sensor);
    let moved = somewhere("sensor-1");
    let moved = store.change(&first, &moved, at(1)).await.unwrap();
    let back = store.change(&moved, &sensor, at(2)).await.unwrap();
    assert_eq!(store.get(&id("sensor-1")).await, Ok(back));
}
