//! `/v1/sensors` and `/v1/locations`, route by route.

use antumbra_service::clock::Clock;
use antumbra_service::sensors::{SensorId, Signal, StateStore, Value as Measured};
use serde_json::{Value, json};

use crate::ground::Ground;

fn lock(id: &str, room: &str) -> String {
    let location = json!({"city": "Poznań", "building": "A", "floor": "2", "room": room});
    json!({"id": id, "location": location, "address": "left", "type": "lock", "silenceAfterSeconds": 60}).to_string()
}

async fn register(ground: &Ground, id: &str, room: &str) {
    ground.post("/v1/sensors", &lock(id, room)).await.ok(201);
}

#[tokio::test]
async fn a_sensor_is_registered_read_changed_moved_and_unregistered() {
    let ground = Ground::start().await;
    let got = ground.post("/v1/sensors", &lock("door:7", "13")).await;
    assert_eq!(got.header("location"), Some("/v1/sensors/door:7"));
    assert_eq!(got.header("etag"), Some("\"1\""));
    let made = got.ok(201);
    assert_eq!(made["location"]["city"], "Poznań");
    assert_eq!(made["silenceAfterSeconds"], 60);
    ground.clock.advance(std::time::Duration::from_secs(1));
    let again = ground.post("/v1/sensors", &lock("door:7", "13")).await;
    assert_eq!(again.ok(200), made, "the same again is no other");
    let told = ground
        .post("/v1/sensors", &lock("door:7", "14"))
        .await
        .problem(409, "AlreadyExists");
    assert_eq!(told["detail"], "already registered");

    let path = "/v1/sensors/door:7";
    assert_eq!(ground.get(path).await.ok(200), made);
    let got = ground
        .ask("GET", path)
        .header("if-none-match", "\"1\"")
        .send()
        .await;
    assert_eq!(got.status, 304);
    let patch = r#"{"address":"right","silenceAfterSeconds":120}"#;
    let with = |tag: &'static str| {
        ground
            .ask("PATCH", path)
            .header("if-match", tag)
            .json(patch)
            .send()
    };
    with("\"2\"").await.problem(412, "PreconditionFailed");
    let got = with("\"1\"").await;
    assert_eq!(got.header("etag"), Some("\"2\""));
    assert_eq!(got.ok(200)["address"], "right");
    let room = r#"{"city":"Poznań","building":"A","floor":"-1","room":"P#1"}"#;
    let elsewhere = ground.post(&format!("{path}/move"), room).await.ok(200);
    assert_eq!(
        (&elsewhere["version"], &elsewhere["location"]["room"]),
        (&json!(3), &json!("P#1"))
    );

    let delete = |tag: &'static str| ground.ask("DELETE", path).header("if-match", tag).send();
    delete("\"1\", \"2\"")
        .await
        .problem(412, "PreconditionFailed");
    delete("\"2\", \"3\"").await.ok(204);
    for got in [
        ground.get(path).await,
        ground.delete(path).await,
        ground.patch(path, "{}").await,
        ground.post(&format!("{path}/move"), room).await,
        ground.get(&format!("{path}/state")).await,
        ground.get(&format!("{path}/readings")).await,
        ground
            .post(&format!("{path}/readings"), r#"{"readings":[{"value":1}]}"#)
            .await,
        ground.get(&format!("{path}/clients")).await,
    ] {
        got.problem(404, "NotFound");
    }
}

#[tokio::test]
async fn what_is_no_sensor_is_refused() {
    let ground = Ground::start().await;
    let good: Value = serde_json::from_str(&lock("a", "1")).unwrap();
    for (pointer, value) in [
        ("/id", json!("no spaces")),
        ("/id", json!("")),
        ("/id", json!(7)),
        ("/location/city", json!("")),
        ("/location/room", json!(" 1")),
        ("/location", json!("here")),
        ("/type", json!("a b")),
        ("/silenceAfterSeconds", json!(0)),
        ("/silenceAfterSeconds", json!(-1)),
        ("/silenceAfterSeconds", json!(1.5)),
        ("/address", json!("x".repeat(513))),
    ] {
        let mut bad = good.clone();
        *bad.pointer_mut(pointer).unwrap() = value;
        ground
            .post("/v1/sensors", &bad.to_string())
            .await
            .problem(400, "Invalid");
    }
    for body in ["{}", r#"{"id":"a"}"#, "[]", "null"] {
        ground
            .post("/v1/sensors", body)
            .await
            .problem(400, "Invalid");
    }
    ground
        .post("/v1/sensors", "{")
        .await
        .problem(400, "InvalidJson");
    let mut more = good.clone();
    more["colour"] = json!("red");
    ground
        .post("/v1/sensors", &more.to_string())
        .await
        .problem(400, "Invalid");
    ground
        .get("/v1/sensors/no%20spaces")
        .await
        .problem(400, "InvalidPath");
    ground
        .ask("PUT", "/v1/sensors")
        .send()
        .await
        .problem(405, "MethodNotAllowed");
}

#[tokio::test]
async fn readings_are_saved_and_read_exactly() {
    let ground = Ground::start().await;
    register(&ground, "t-1", "13").await;
    let path = "/v1/sensors/t-1/readings";
    let body = r#"{"readings":[
        {"value":21.500000000000000000000000001,"unit":"°C","time":"2026-01-31T11:00:00+01:00","sequence":1},
        {"value":"open","time":1769857201},
        {"value":true,"time":"2026-01-31T11:00:02Z"},
        {"value":9007199254740993}]}"#;
    ground.post(path, body).await.ok(204);
    ground.post(path, body).await.ok(204);
    let got = ground.get(path).await;
    let latest = got.ok(200);
    assert_eq!(latest["readings"].as_array().unwrap().len(), 4, "{latest}");
    assert_eq!(
        latest["readings"][0]["time"], "2026-01-31T12:00:00Z",
        "now, as nothing was said"
    );
    assert_eq!(latest["readings"][3]["time"], "2026-01-31T10:00:00Z");
    for digits in ["21.500000000000000000000000001", "9007199254740993"] {
        assert!(got.text.contains(digits), "{}", got.text);
    }
    let newest = ground.get(&format!("{path}?limit=1")).await.ok(200);
    assert_eq!(newest["readings"].as_array().unwrap().len(), 1);
    let span = "from=2026-01-31T10:00:00Z&to=2026-01-31T12:00:00Z&limit=2";
    let first = ground.get(&format!("{path}?{span}")).await.ok(200);
    let next = first["next"].as_str().unwrap();
    let second = ground
        .get(&format!("{path}?{span}&cursor={next}"))
        .await
        .ok(200);
    let values: Vec<&Value> = [&first, &second]
        .into_iter()
        .flat_map(|page| page["readings"].as_array().unwrap())
        .map(|reading| &reading["value"])
        .collect();
    assert_eq!(values.len(), 3, "{values:?}");
    assert_eq!(values[2], &json!(true));
    for bad in [
        r#"{"readings":[]}"#,
        r#"{"readings":[{"value":null}]}"#,
        r#"{"readings":[{"value":[1]}]}"#,
        r#"{"readings":[{"value":1},{"value":1e999}]}"#,
        r#"{"readings":[{"value":1,"time":"yesterday"}]}"#,
        r#"{"readings":[{"value":1,"unit":""}]}"#,
        r#"{"readings":[{"unit":"m"}]}"#,
        r#"{"readings":[{"value":1,"sequence":-1}]}"#,
    ] {
        ground.post(path, bad).await.problem(400, "Invalid");
    }
    for query in ["limit=0", "limit=1001", "from=yesterday", "cursor=00"] {
        ground
            .get(&format!("{path}?{query}"))
            .await
            .problem(400, "InvalidQuery");
    }
    ground
        .get(&format!("{path}?from=2026-01-31T10:00:00Z&cursor=00"))
        .await
        .problem(400, "Invalid");
}

#[tokio::test]
async fn readings_of_more_than_a_megabyte_come_page_by_page() {
    let ground = Ground::start().await;
    register(&ground, "t-1", "13").await;
    let path = "/v1/sensors/t-1/readings";
    let text = "x".repeat(1000);
    for hour in 0..14 {
        let readings: Vec<Value> = (0..90)
            .map(|n| json!({"value": text, "time": format!("2026-01-30T{hour:02}:{:02}:{:02}Z", n / 60, n % 60), "sequence": n}))
            .collect();
        ground
            .post(path, &json!({"readings": readings}).to_string())
            .await
            .ok(204);
    }
    let (mut seen, mut bytes, mut cursor) = (Vec::new(), 0, String::new());
    loop {
        let got = ground
            .get(&format!(
                "{path}?from=2026-01-30T00:00:00Z&limit=1000{cursor}"
            ))
            .await;
        bytes += got.text.len();
        let page = got.ok(200);
        let times = page["readings"].as_array().unwrap().iter();
        seen.extend(times.map(|reading| {
            (
                reading["time"].as_str().unwrap().to_owned(),
                reading["sequence"].as_u64(),
            )
        }));
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(seen.len(), 14 * 90);
    assert!(bytes > 1024 * 1024);
    assert!(seen.is_sorted());
    seen.dedup();
    assert_eq!(seen.len(), 14 * 90);
}

#[tokio::test]
async fn a_state_tells_what_was_last_said_and_a_place_lists_its_sensors() {
    let ground = Ground::start().await;
    for (id, room) in [("a", "13"), ("b", "13"), ("c", "14")] {
        register(&ground, id, room).await;
    }
    let state = ground.get("/v1/sensors/a/state").await.ok(200);
    assert_eq!(
        (&state["connection"], state.get("value")),
        (&json!("NEVER"), None)
    );
    let now = ground.clock.now();
    let id = SensorId::new("a").unwrap();
    let signal = Signal::new(id, Measured::whole(1), None, None, now, "m").unwrap();
    ground.sensors.record(&signal).await.unwrap();
    let state = ground.get("/v1/sensors/a/state").await.ok(200);
    assert_eq!(
        (&state["connection"], &state["value"]),
        (&json!("ONLINE"), &json!(1))
    );
    assert_eq!(state["lastSeen"], "2026-01-31T12:00:00Z");
    assert_eq!(state["deadline"], "2026-01-31T12:01:00Z");

    let city = "/v1/locations/Pozna%C5%84";
    let ids = async |path: &str| {
        let page = ground.get(path).await.ok(200);
        let rows = page["sensors"].as_array().unwrap().clone();
        (
            rows.iter()
                .map(|row| row["id"].as_str().unwrap().to_owned())
                .collect::<Vec<_>>(),
            page,
        )
    };
    for (below, wanted) in [
        ("", vec!["a", "b", "c"]),
        ("/A", vec!["a", "b", "c"]),
        ("/A/2", vec!["a", "b", "c"]),
        ("/A/2/13", vec!["a", "b"]),
        ("/A/21", vec![]),
    ] {
        let (found, page) = ids(&format!("{city}{below}/sensors")).await;
        assert_eq!(found, wanted, "{below}");
        if below.is_empty() {
            assert_eq!(page["sensors"][0]["state"]["value"], 1);
            assert_eq!(page["sensors"][0]["location"]["room"], "13");
        }
    }
    let (first, page) = ids(&format!("{city}/sensors?limit=2")).await;
    let next = page["next"].as_str().unwrap();
    let (rest, _) = ids(&format!("{city}/sensors?limit=2&cursor={next}")).await;
    assert_eq!([first, rest].concat(), ["a", "b", "c"]);
    ground
        .get(&format!("{city}/A/sensors?limit=2&cursor={next}"))
        .await
        .problem(400, "Invalid");
    ground
        .get("/v1/locations/%20x/sensors")
        .await
        .problem(400, "InvalidPath");
    ground
        .get(&format!("{city}/sensors?limit=0"))
        .await
        .problem(400, "InvalidQuery");
}

#[tokio::test]
async fn all_sensors_are_listed_by_id_in_pages() {
    let ground = Ground::start().await;
    let empty = ground.get("/v1/sensors").await.ok(200);
    assert_eq!(empty, json!({"sensors": []}));
    for (id, room) in [("c", "1"), ("a", "3"), ("b", "2")] {
        register(&ground, id, room).await;
    }
    let ids = |page: &Value| -> Vec<Value> {
        let sensors = page["sensors"].as_array().unwrap().iter();
        sensors.map(|sensor| sensor["id"].clone()).collect()
    };
    let first = ground.get("/v1/sensors?limit=2").await.ok(200);
    assert_eq!(ids(&first), ["a", "b"]);
    assert_eq!(first["sensors"][0]["location"]["room"], "3");
    assert_eq!(first["sensors"][0]["state"]["connection"], "NEVER");
    let next = first["next"].as_str().unwrap();
    let path = format!("/v1/sensors?limit=2&cursor={next}");
    let rest = ground.get(&path).await.ok(200);
    assert_eq!((ids(&rest), rest.get("next")), (vec![json!("c")], None));
    for query in ["limit=0", "limit=1001", "city=Lund"] {
        ground
            .get(&format!("/v1/sensors?{query}"))
            .await
            .problem(400, "InvalidQuery");
    }
    let of_place = format!("/v1/locations/Lund/sensors?cursor={next}");
    for path in ["/v1/sensors?cursor=00", &of_place] {
        ground.get(path).await.problem(400, "Invalid");
    }
}
