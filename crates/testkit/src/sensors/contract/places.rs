//! Laws of listings, by location and of all sensors.

use std::collections::BTreeSet;

use antumbra_service::sensors::{
    Connection, LocationPrefix, SensorError, SensorQuery, SensorType, SensorWithState, StoreError,
    Value,
};

use super::Store;
use crate::all_pages;
use crate::sensors::sample::{at, new, record, sensor, signal};

async fn register<S: Store>(store: &S, sensors: &[(&str, [&str; 4])]) {
    for (id, at) in sensors {
        store.register(&new(sensor(id, *at))).await.unwrap();
    }
}

fn place(parts: &[&str]) -> LocationPrefix {
    let part = |n: usize| parts.get(n).copied();
    LocationPrefix::new(parts[0], part(1), part(2), part(3)).unwrap()
}

async fn rows<S: Store>(store: &S, place: &LocationPrefix, limit: usize) -> Vec<SensorWithState> {
    let query = SensorQuery::in_place(place.clone());
    let next = async |cursor: Option<&_>| store.list(&query, limit, cursor).await.unwrap();
    all_pages(limit, next).await
}

async fn ids<S: Store>(store: &S, parts: &[&str]) -> Vec<String> {
    let rows = rows(store, &place(parts), 100).await;
    rows.iter().map(|row| row.sensor.id.to_string()).collect()
}

pub async fn sensors_are_listed_by_location<S: Store>(store: S) {
    register(
        &store,
        &[
            ("sensor-1", ["Poznan", "A", "1", "2"]),
            ("sensor-2", ["Poznan", "A", "2", "4"]),
            ("sensor-3", ["Poznan", "A", "2", "5"]),
            ("sensor-4", ["Poznan", "B", "2", "5"]),
            ("sensor-5", ["Poznań", "A", "2", "5"]),
        ],
    )
    .await;
    for (parts, found) in [
        (&["Poznan", "A", "2"][..], &["sensor-2", "sensor-3"][..]),
        (
            &["Poznan"],
            &["sensor-1", "sensor-2", "sensor-3", "sensor-4"],
        ),
        (&["Poznan", "A"], &["sensor-1", "sensor-2", "sensor-3"]),
        (&["Poznan", "A", "2", "5"], &["sensor-3"]),
        (&["Poznań"], &["sensor-5"]),
        (&["Pozna"], &[]),
        (&["Poznan", "A", "3"], &[]),
    ] {
        assert_eq!(ids(&store, parts).await, found, "{parts:?}");
    }
}

pub async fn floor_two_is_not_floor_twenty_one<S: Store>(store: S) {
    for floor in ["2", "20", "21", "-2", "-1"] {
        let id = format!("on{floor}");
        register(&store, &[(&id, ["Poznań", "A", floor, "1"])]).await;
    }
    assert_eq!(ids(&store, &["Poznań", "A", "2"]).await, ["on2"]);
    assert_eq!(ids(&store, &["Poznań", "A", "-1"]).await, ["on-1"]);
    assert_eq!(ids(&store, &["Poznań", "A"]).await.len(), 5);
}

pub async fn two_sensors_in_one_room_are_both_listed<S: Store>(store: S) {
    let room = ["Poznań", "A", "2", "13"];
    register(&store, &[("gas", room), ("smoke", room), ("Smoke", room)]).await;
    assert_eq!(ids(&store, &room).await, ["Smoke", "gas", "smoke"]);
}

pub async fn location_parts_may_contain_any_character<S: Store>(store: S) {
    let strange = [
        ["a#b", "c", "d", "e"],
        ["a", "b#c", "d", "e"],
        ["a", "b", "c#d", "e"],
        ["a", "b", "c", "d#e"],
        ["a%23b", "c", "d", "e"],
        ["Saint-Étienne 🦀", "Bâtiment n° 3", "-1", "salle “Ω”"],
    ];
    for (n, at) in strange.iter().enumerate() {
        register(&store, &[(&format!("s{n}"), *at)]).await;
    }
    for (n, at) in strange.iter().enumerate() {
        for depth in 1..=4 {
            let found = rows(&store, &place(&at[..depth]), 100).await;
            let ours = found
                .iter()
                .find(|row| row.sensor.id.as_str() == format!("s{n}"));
            assert_eq!(
                ours.map(|row| &row.sensor),
                Some(&sensor(&format!("s{n}"), *at))
            );
        }
        assert_eq!(ids(&store, at).await, [format!("s{n}")]);
    }
    // Unicode normalization forms of one name are equal.
    let decomposed = "Saint-E\u{301}tienne 🦀";
    assert_eq!(ids(&store, &[decomposed]).await, ["s5"]);
}

pub async fn a_moved_sensor_is_listed_at_its_new_location<S: Store>(store: S) {
    let here = store
        .register(&new(sensor("s", ["a", "b", "c", "d"])))
        .await
        .unwrap();
    let there = sensor("s", ["a", "b", "x", "d"]);
    let moved = store.change(&here, &there, at(1)).await.unwrap();
    assert!(ids(&store, &["a", "b", "c"]).await.is_empty());
    assert_eq!(ids(&store, &["a", "b", "x"]).await, ["s"]);
    let far = sensor("s", ["z", "b", "x", "d"]);
    store.change(&moved, &far, at(2)).await.unwrap();
    assert!(ids(&store, &["a"]).await.is_empty());
    assert_eq!(ids(&store, &["z", "b", "x", "d"]).await, ["s"]);
}

pub async fn rows_contain_the_latest_state<S: Store>(store: S) {
    let room = ["a", "b", "c", "d"];
    register(&store, &[("active", room), ("silent", room)]).await;
    record(&store, &signal("active", 1, 5, 5)).await;
    let found = rows(&store, &place(&room), 10).await;
    let state = |n: usize| found[n].state.as_ref().unwrap();
    assert_eq!(found[0].sensor, sensor("active", room));
    assert_eq!(state(0).value, Some(Value::whole(1)));
    assert_eq!(state(0).last_seen, Some(at(5)));
    assert_eq!(state(1).value, None);
}

pub async fn pages_contain_each_sensor_once_in_order<S: Store>(store: S) {
    for n in 0..25 {
        let floor = (n % 5).to_string();
        register(&store, &[(&format!("s{n:02}"), ["a", "b", &floor, "r"])]).await;
    }
    let whole = ids(&store, &["a"]).await;
    assert_eq!(whole[..6], ["s00", "s05", "s10", "s15", "s20", "s01"]);
    for limit in [1, 2, 7, 24, 25, 26, 1000] {
        let paged = rows(&store, &place(&["a"]), limit).await;
        let paged: Vec<String> = paged.iter().map(|row| row.sensor.id.to_string()).collect();
        assert_eq!(paged, whole, "{limit} a page");
    }
}

pub async fn a_sensor_that_moves_between_pages_hides_no_other<S: Store>(store: S) {
    for n in 0..9 {
        register(
            &store,
            &[(&format!("s{n}"), ["a", "b", &n.to_string(), "r"])],
        )
        .await;
    }
    let city = place(&["a"]);
    let mut seen = BTreeSet::new();
    let mut cursor = None;
    let mut floor = 0;
    loop {
        let page = store
            .list(&SensorQuery::in_place(city.clone()), 2, cursor.as_ref())
            .await
            .unwrap();
        seen.extend(page.rows.iter().map(|row| row.sensor.id.to_string()));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
        // The last sensor of this page moves alternately before and after all others.
        let last = &page.rows.last().unwrap().sensor;
        let held = store.get(&last.id).await.unwrap();
        let to = if floor % 2 == 0 { "9" } else { "!" };
        floor += 1;
        let there = sensor(last.id.as_str(), ["a", "b", to, "r"]);
        store.change(&held, &there, at(1)).await.unwrap();
    }
    assert_eq!(seen.len(), 9, "{seen:?}");
}

pub async fn all_sensors_are_listed_by_id<S: Store>(store: S) {
    let ids = |rows: &[SensorWithState]| -> Vec<String> {
        let ids = rows.iter().map(|row| row.sensor.id.to_string());
        ids.collect()
    };
    assert_eq!(
        store
            .list(&SensorQuery::default(), 1, None)
            .await
            .unwrap()
            .rows,
        []
    );
    register(
        &store,
        &[
            ("b", ["Poznan", "A", "1", "2"]),
            ("C", ["Łódź", "A", "1", "2"]),
            ("a", ["Poznan", "Z", "9", "9"]),
            ("a:1", ["Poznan", "A", "1", "2"]),
            ("gone", ["Lund", "A", "1", "2"]),
        ],
    )
    .await;
    let gone = store.get(&crate::sensors::sample::id("gone")).await;
    store.unregister(&gone.unwrap(), at(1)).await.unwrap();
    let moved = store.get(&crate::sensors::sample::id("b")).await.unwrap();
    let there = sensor("b", ["Lund", "B", "1", "1"]);
    store.change(&moved, &there, at(1)).await.unwrap();
    let query = SensorQuery::default();
    let next = async |cursor: Option<&_>| store.list(&query, 2, cursor).await.unwrap();
    let rows = all_pages(2, next).await;
    assert_eq!(ids(&rows), ["C", "a", "a:1", "b"]);
    assert!(rows.iter().all(|row| row.state.is_some()));
    assert_eq!(rows[3].sensor, there);
    // Cursors are not valid for other listings.
    let of_all = store
        .list(&SensorQuery::default(), 1, None)
        .await
        .unwrap()
        .next;
    let of_city = store
        .list(&SensorQuery::in_place(place(&["Poznan"])), 1, None)
        .await
        .unwrap();
    assert!(
        store
            .list(&SensorQuery::default(), 1, of_city.next.as_ref())
            .await
            .is_err()
    );
    let city = place(&["Poznan"]);
    assert!(
        store
            .list(&SensorQuery::in_place(city.clone()), 1, of_all.as_ref())
            .await
            .is_err()
    );
    for limit in [0, 1001] {
        assert!(
            store
                .list(&SensorQuery::default(), limit, None)
                .await
                .is_err()
        );
    }
}

pub async fn a_cursor_is_valid_only_for_its_own_listing<S: Store>(store: S) {
    let room = ["a", "b", "c", "d"];
    register(&store, &[("one", room), ("two", room)]).await;
    let page = store
        .list(&SensorQuery::in_place(place(&["a"])), 1, None)
        .await
        .unwrap();
    let cursor = page.next.unwrap();
    for other in [place(&["a", "b"]), place(&["b"])] {
        let rejected = store
            .list(&SensorQuery::in_place(other.clone()), 1, Some(&cursor))
            .await;
        assert!(matches!(
            rejected,
            Err(SensorError::Store(StoreError::Invalid(_)))
        ));
    }
    let mut damaged = cursor.clone();
    damaged.0.replace_range(..1, "f");
    damaged.0.push('0');
    assert!(
        store
            .list(&SensorQuery::in_place(place(&["a"])), 1, Some(&damaged))
            .await
            .is_err()
    );
}

pub async fn an_invalid_page_request_is_rejected<S: Store>(store: S) {
    register(&store, &[("one", ["a", "b", "c", "d"])]).await;
    let one = crate::sensors::sample::id("one");
    let expected = |limit: usize| {
        let fault = format!("a page holds 1 to 1000 entries, not {limit}");
        StoreError::Invalid(fault)
    };
    for limit in [0, 1001] {
        let error = SensorError::Store(expected(limit));
        let listed = store
            .list(&SensorQuery::in_place(place(&["a"])), limit, None)
            .await;
        assert_eq!(listed.unwrap_err(), error);
        assert_eq!(store.latest(&one, limit).await.unwrap_err(), error);
        let between = store.between(&one, at(0), at(1), limit, None).await;
        assert_eq!(between.unwrap_err(), error);
        assert_eq!(
            store.due(0, at(0), limit, None).await.unwrap_err(),
            expected(limit)
        );
    }
    let backwards = store.between(&one, at(1), at(0), 1, None).await;
    assert!(matches!(
        backwards,
        Err(SensorError::Store(StoreError::Invalid(_)))
    ));
}

pub async fn sensors_are_filtered_by_id_type_and_connection<S: Store>(store: S) {
    for n in 0..30 {
        let mut one = sensor(&format!("s-{n:02}"), ["a", "b", "c", "d"]);
        if n % 3 == 0 {
            one.sensor_type = SensorType::new("lock").unwrap();
        }
        if n % 2 == 0 {
            one.location = None;
        }
        store.register(&new(one)).await.unwrap();
        if n % 5 == 0 {
            record(&store, &signal(&format!("s-{n:02}"), 1, 1, 1)).await;
        }
    }
    let all = SensorQuery::default();
    let lock = || SensorType::new("lock").ok();
    let online = Some(Connection::Online);
    let queries: [(SensorQuery, &dyn Fn(usize) -> bool); 6] = [
        (all.clone(), &|_| true),
        (
            SensorQuery {
                id_prefix: "s-1".into(),
                ..all.clone()
            },
            &|n| n / 10 == 1,
        ),
        (
            SensorQuery {
                sensor_type: lock(),
                ..all.clone()
            },
            &|n| n % 3 == 0,
        ),
        (
            SensorQuery {
                connection: online,
                ..all.clone()
            },
            &|n| n % 5 == 0,
        ),
        (SensorQuery::in_place(place(&["a"])), &|n| n % 2 == 1),
        (
            SensorQuery {
                place: Some(place(&["a", "b"])),
                id_prefix: "s-1".into(),
                sensor_type: lock(),
                connection: online,
                ..all.clone()
            },
            &|n| n == 15,
        ),
    ];
    for (query, selects) in &queries {
        let expected: Vec<String> = (0..30)
            .filter(|n| selects(*n))
            .map(|n| format!("s-{n:02}"))
            .collect();
        for limit in [1, 4, 1000] {
            let next = async |cursor: Option<&_>| store.list(query, limit, cursor).await.unwrap();
            let found = all_pages(limit, next).await;
            let found: Vec<&str> = found.iter().map(|row| row.sensor.id.as_str()).collect();
            assert_eq!(found, expected, "{query:?} by {limit}");
        }
    }
    let next = store.list(&all, 1, None).await.unwrap().next;
    for (query, _) in &queries[1..] {
        assert!(store.list(query, 1, next.as_ref()).await.is_err());
    }
}
