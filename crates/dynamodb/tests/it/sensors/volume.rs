//! Large listings, and items next to readings.

use antumbra_service::sensors::{
    Address, LocationPrefix, Reading, ReadingStore, SensorQuery, SensorStore, Value,
};
use antumbra_testkit::sensors::sample::{at, id, new, registered, sensor};

use super::put;
use crate::store::sensors;

/// A page of DynamoDB ends at one megabyte.
#[tokio::test]
async fn more_than_a_megabyte_of_readings_is_returned() {
    let store = sensors().await;
    let held = registered(&*store, "s").await;
    let reading = |n: i64| {
        let text = format!("{n:04}{}", "x".repeat(1020));
        Reading::new(Value::text(text).unwrap(), None, at(n), None).unwrap()
    };
    let many: Vec<Reading> = (0..1200).map(reading).collect();
    store.save(&held, &many).await.unwrap();
    store.endpoint.take_calls();
    let (_, latest) = store.latest(&id("s"), 1000).await.unwrap();
    assert!(latest.iter().eq(many.iter().rev().take(1000)));
    assert_eq!(store.operations(), ["Query", "Query"]);

    let page = store.between(&id("s"), at(0), at(1200), 1000, None).await;
    let (_, page) = page.unwrap();
    assert_eq!(page.rows, many[..1000]);
    let rest = store
        .between(&id("s"), at(0), at(1200), 1000, page.next.as_ref())
        .await;
    let (_, rest) = rest.unwrap();
    assert_eq!((rest.rows, rest.next), (many[1000..].to_vec(), None));
}

#[tokio::test]
async fn more_than_a_megabyte_of_sensors_is_returned() {
    let store = sensors().await;
    let long = "ä".repeat(50);
    for n in 0..900 {
        let mut one = sensor(&format!("s{n:03}"), [&long, &long, &long, &long]);
        one.address = Address::new("y".repeat(512)).unwrap();
        store.register(&new(one)).await.unwrap();
    }
    store.endpoint.take_calls();
    let place = LocationPrefix::new(&long, Some(&long), None, None).unwrap();
    let page = store
        .list(&SensorQuery::in_place(place.clone()), 1000, None)
        .await
        .unwrap();
    assert_eq!((page.rows.len(), page.next), (900, None));
    let calls = store.operations();
    let queries = calls.iter().filter(|call| *call == "Query").count();
    assert!(queries > 1, "{calls:?}");
    let paged = store
        .list(&SensorQuery::in_place(place.clone()), 700, None)
        .await
        .unwrap();
    let rest = store
        .list(
            &SensorQuery::in_place(place.clone()),
            700,
            paged.next.as_ref(),
        )
        .await
        .unwrap();
    let all: Vec<_> = paged.rows.into_iter().chain(rest.rows).collect();
    assert_eq!(all, page.rows);
}

/// `CLIENT#…` sorts before `READ#…`, so a range without a lower bound would include links.
#[tokio::test]
async fn a_short_list_of_readings_includes_no_links() {
    let store = sensors().await;
    let held = registered(&*store, "s").await;
    for n in 0..5 {
        put(&store, "SENSOR#s", &format!("CLIENT#c{n}")).await;
    }
    put(&store, "SENSOR#s", "PURGE#former").await;
    let reading = Reading::new(Value::whole(1), None, at(0), None).unwrap();
    store
        .save(&held, std::slice::from_ref(&reading))
        .await
        .unwrap();
    let latest = store.latest(&id("s"), 10).await.unwrap();
    assert_eq!(latest, (held, vec![reading]));
}

#[tokio::test]
async fn readings_without_a_sensor_are_not_found() {
    let store = sensors().await;
    put(
        &store,
        "SENSOR#s",
        "READ#2026-01-31T12:00:00.000000000Z#00000000000000000001",
    )
    .await;
    let latest = store.latest(&id("s"), 10).await;
    assert_eq!(
        latest,
        Err(antumbra_service::sensors::SensorError::NotFound)
    );
}

#[tokio::test]
async fn readings_expire_by_sensor_type() {
    let store = sensors().await;
    let config = antumbra_dynamodb::SensorConfig {
        retention: "sensor=2".parse().unwrap(),
        ..store.config().clone()
    };
    let sensors = antumbra_dynamodb::DynamoDbSensors::new(store.client.clone(), config);
    let held = registered(&sensors, "s").await;
    let reading = Reading::new(Value::whole(1), None, at(0), Some(1)).unwrap();
    sensors.save(&held, &[reading]).await.unwrap();
    let calls = store.endpoint.take_calls();
    let put = &calls.last().unwrap().body["TransactItems"][1]["Put"]["Item"];
    let two_days_later = 1_769_860_800 + 2 * 86_400;
    assert_eq!(put["ttl"]["N"], two_days_later.to_string());
}
