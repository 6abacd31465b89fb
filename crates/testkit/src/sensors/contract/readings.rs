//! Laws of `ReadingStore`.

use antumbra_service::sensors::{Reading, SensorError, StoreError, TimeRange, Unit, Value};
use antumbra_shadow::Timestamp;

use super::Store;
use crate::all_pages;
use crate::sensors::sample::{at, id, new, registered, somewhere};

fn reading(value: &str, seconds: i64) -> Reading {
    Reading::new(Value::number(value).unwrap(), None, at(seconds), None).unwrap()
}

fn values(readings: &[Reading]) -> Vec<String> {
    readings
        .iter()
        .map(|reading| reading.value.to_string())
        .collect()
}

pub async fn a_saved_reading_is_the_latest<S: Store>(store: S) {
    let sensor = registered(&store, "sensor-1").await;
    store.save(&sensor, &[reading("0.67", 0)]).await.unwrap();
    let (_, latest) = store.latest(&id("sensor-1"), 1).await.unwrap();
    assert_eq!(values(&latest), ["0.67"]);
}

pub async fn the_latest_readings_are_newest_first<S: Store>(store: S) {
    let sensor = registered(&store, "sensor-1").await;
    let other = registered(&store, "sensor-10").await;
    store.save(&other, &[reading("9", 5)]).await.unwrap();
    for (value, seconds) in [("0.5", -10), ("0.3", -20), ("0.67", 0)] {
        store
            .save(&sensor, &[reading(value, seconds)])
            .await
            .unwrap();
    }
    let (found, latest) = store.latest(&id("sensor-1"), 2).await.unwrap();
    assert_eq!(
        (found, values(&latest)),
        (sensor, vec!["0.67".into(), "0.5".into()])
    );
    let (_, all) = store.latest(&id("sensor-1"), 10).await.unwrap();
    assert_eq!(values(&all), ["0.67", "0.5", "0.3"]);
}

pub async fn readings_of_unknown_sensors_are_rejected<S: Store>(store: S) {
    let stranger = new(somewhere("sensor-1"));
    let saved = store.save(&stranger, &[reading("1", 0)]).await;
    assert_eq!(saved, Err(SensorError::NotFound));
    registered(&store, "sensor-1").await;
    let saved = store.save(&stranger, &[reading("1", 0)]).await;
    assert_eq!(saved, Err(SensorError::NotFound), "another generation");
    let (_, latest) = store.latest(&id("sensor-1"), 10).await.unwrap();
    assert!(latest.is_empty());
}

pub async fn two_readings_in_one_second_are_two<S: Store>(store: S) {
    let sensor = registered(&store, "s").await;
    let time = |text| Timestamp::parse(text).unwrap();
    let number = |n| Value::whole(n);
    let at_once = time("2026-01-31T12:00:00.000000001Z");
    let readings = [
        Reading::new(number(1), None, time("2026-01-31T12:00:00Z"), None).unwrap(),
        Reading::new(number(2), None, at_once, Some(1)).unwrap(),
        Reading::new(number(3), None, at_once, Some(2)).unwrap(),
        Reading::new(number(4), None, time("2026-01-31T12:00:00.1Z"), None).unwrap(),
    ];
    store.save(&sensor, &readings).await.unwrap();
    let (_, latest) = store.latest(&id("s"), 10).await.unwrap();
    assert_eq!(values(&latest), ["4", "3", "2", "1"]);
}

pub async fn a_repeated_reading_is_stored_once<S: Store>(store: S) {
    let sensor = registered(&store, "s").await;
    for _ in 0..3 {
        let twice = [reading("1", 0), reading("1", 0), reading("2", 0)];
        store.save(&sensor, &twice).await.unwrap();
    }
    let (_, latest) = store.latest(&id("s"), 10).await.unwrap();
    let mut found = values(&latest);
    found.sort();
    assert_eq!(
        found,
        ["1", "2"],
        "different things at one time are two readings"
    );
}

pub async fn readings_sort_correctly_for_any_utc_offset<S: Store>(store: S) {
    let sensor = registered(&store, "s").await;
    for (n, time) in [
        "2026-01-31T12:00:00+05:00",
        "2026-01-31T11:00:00Z",
        "2026-01-31T03:00:00-08:30",
        "2026-01-31T12:00:00.000000001+00:30",
        "1999-12-31T23:59:59Z",
    ]
    .into_iter()
    .enumerate()
    {
        let time = Timestamp::parse(time).unwrap();
        let reading = Reading::new(Value::whole(n as i64), None, time, None).unwrap();
        store.save(&sensor, &[reading]).await.unwrap();
    }
    let (_, latest) = store.latest(&id("s"), 10).await.unwrap();
    assert_eq!(values(&latest), ["3", "2", "1", "0", "4"]);
}

pub async fn readings_are_typed_and_exact<S: Store>(store: S) {
    let sensor = registered(&store, "s").await;
    let exact = "12345678901234567890123456789.012345678";
    let values = [
        Value::number(exact).unwrap(),
        Value::text("ä\"#\n").unwrap(),
        Value::text("").unwrap(),
        Value::Boolean(true),
        Value::whole(-1),
    ];
    let unit = Some(Unit::new("°C").unwrap());
    let given: Vec<Reading> = (0..)
        .zip(values)
        .map(|(n, value)| Reading::new(value, unit.clone(), at(-n), Some(n as u64)).unwrap())
        .collect();
    store.save(&sensor, &given).await.unwrap();
    let (_, latest) = store.latest(&id("s"), 10).await.unwrap();
    assert_eq!(latest, given);
}

pub async fn many_readings_are_saved_at_once<S: Store>(store: S) {
    let sensor = registered(&store, "s").await;
    let many: Vec<Reading> = (0..205).map(|n| reading(&n.to_string(), n)).collect();
    store.save(&sensor, &many).await.unwrap();
    store.save(&sensor, &[]).await.unwrap();
    let (_, latest) = store.latest(&id("s"), 1000).await.unwrap();
    let newest_first: Vec<Reading> = many.into_iter().rev().collect();
    assert_eq!(latest, newest_first);
}

pub async fn readings_between_two_times_are_paged<S: Store>(store: S) {
    let sensor = registered(&store, "s").await;
    let many: Vec<Reading> = (0..20).map(|n| reading(&n.to_string(), n)).collect();
    store.save(&sensor, &many).await.unwrap();
    for limit in [1, 3, 10, 11] {
        let next = async |cursor: Option<&_>| {
            let found = store.between(&id("s"), at(5), at(15), limit, cursor).await;
            let (found_sensor, page) = found.unwrap();
            assert_eq!(found_sensor, sensor);
            page
        };
        let found = all_pages(limit, next).await;
        assert_eq!(found, many[5..15], "from is in, to is not; {limit} a page");
    }
    for limit in [1, 3, 10, 11] {
        let range = TimeRange {
            from: at(5),
            to: at(15),
            newest_first: true,
        };
        let sensor = id("s");
        let next = async |cursor: Option<&_>| {
            let found = store.in_range(&sensor, &range, limit, cursor).await;
            found.unwrap().1
        };
        let found = all_pages(limit, next).await;
        let newest_first: Vec<Reading> = many[5..15].iter().rev().cloned().collect();
        assert_eq!(found, newest_first, "{limit} a page");
        // A cursor of one order is not valid for the other.
        if let Some(cursor) = next(None).await.next {
            let other = store.between(&sensor, at(5), at(15), limit, Some(&cursor));
            assert!(matches!(
                other.await,
                Err(SensorError::Store(StoreError::Invalid(_)))
            ));
        }
    }
    let (_, page) = store
        .between(&id("s"), at(5), at(15), 1, None)
        .await
        .unwrap();
    let other = store
        .between(&id("s"), at(5), at(16), 1, page.next.as_ref())
        .await;
    assert!(matches!(
        other,
        Err(SensorError::Store(StoreError::Invalid(_)))
    ));
    let (_, nothing) = store
        .between(&id("s"), at(5), at(5), 1, None)
        .await
        .unwrap();
    assert!(nothing.rows.is_empty());
    let far = Timestamp::from_nanoseconds(i128::from(i64::MAX) * 1_000_000_000);
    let beyond = store.between(&id("s"), at(5), far, 1, None).await;
    assert!(matches!(
        beyond,
        Err(SensorError::Store(StoreError::Invalid(_)))
    ));
}

pub async fn the_latest_readings_are_paged_newest_first<S: Store>(store: S) {
    let sensor = registered(&store, "s").await;
    let other = registered(&store, "other").await;
    let many: Vec<Reading> = (0..20).map(|n| reading(&n.to_string(), n)).collect();
    for one in [&sensor, &other] {
        store.save(one, &many).await.unwrap();
    }
    let newest_first: Vec<Reading> = many.into_iter().rev().collect();
    for limit in [1, 3, 19, 20, 21] {
        let next = async |cursor: Option<&_>| {
            let found = store.latest_page(&id("s"), limit, cursor).await;
            let (found_sensor, page) = found.unwrap();
            assert_eq!(found_sensor, sensor);
            page
        };
        let found = all_pages(limit, next).await;
        assert_eq!(found, newest_first, "{limit} a page");
    }
    let (_, page) = store.latest_page(&id("s"), 1, None).await.unwrap();
    let mistaken = store.latest_page(&id("other"), 1, page.next.as_ref()).await;
    assert!(matches!(
        mistaken,
        Err(SensorError::Store(StoreError::Invalid(_)))
    ));
}
