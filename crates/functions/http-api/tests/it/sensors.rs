//! `/v1/sensors` and `/v1/locations`, route by route.

use antumbra_service::clock::Clock;
use antumbra_service::sensors::{SensorId, Signal, StateStore, Value as Measured};
use serde_json::{Value, json};

use crate::support::TestApi;

fn lock(id: &str, room: &str) -> String {
    let location = json!({"city": "Poznań", "building": "A", "floor": "2", "room": room});
    json!({"id": id, "location": location, "address": "left", "type": "lock", "silenceAfterSeconds": 60}).to_string()
}

async fn register(api: &TestApi, id: &str, room: &str) {
    api.post("/v1/sensors", &lock(id, room)).await.ok(201);
}

#[tokio::test]
async fn a_sensor_is_registered_read_changed_moved_and_unregistered() {
    let api = TestApi::start().await;
    let response = api.post("/v1/sensors", &lock("door:7", "13")).await;
    assert_eq!(response.header("location"), Some("/v1/sensors/door:7"));
    assert_eq!(response.header("etag"), Some("\"1\""));
    let created = response.ok(201);
    assert_eq!(created["location"]["city"], "Poznań");
    assert_eq!(created["silenceAfterSeconds"], 60);
    api.clock.advance(std::time::Duration::from_secs(1));
    for room in ["13", "14"] {
        let again = api.post("/v1/sensors", &lock("door:7", room)).await;
        let problem = again.problem(409, "AlreadyRegistered");
        assert_eq!(problem["detail"], "already registered");
    }

    let path = "/v1/sensors/door:7";
    assert_eq!(api.get(path).await.ok(200), created);
    let response = api
        .request("GET", path)
        .header("if-none-match", "\"1\"")
        .send()
        .await;
    assert_eq!(response.status, 304);
    let patch = r#"{"address":"right","silenceAfterSeconds":120}"#;
    let with = |tag: &'static str| {
        api.request("PATCH", path)
            .header("if-match", tag)
            .json(patch)
            .send()
    };
    with("\"2\"").await.problem(412, "PreconditionFailed");
    let response = with("\"1\"").await;
    assert_eq!(response.header("etag"), Some("\"2\""));
    assert_eq!(response.ok(200)["address"], "right");
    let room = r#"{"city":"Poznań","building":"A","floor":"-1","room":"P#1"}"#;
    let elsewhere = api.post(&format!("{path}/move"), room).await.ok(200);
    assert_eq!(
        (&elsewhere["version"], &elsewhere["location"]["room"]),
        (&json!(3), &json!("P#1"))
    );

    let delete = |tag: &'static str| api.request("DELETE", path).header("if-match", tag).send();
    delete("\"1\", \"2\"")
        .await
        .problem(412, "PreconditionFailed");
    delete("\"2\", \"3\"").await.ok(204);
    for response in [
        api.get(path).await,
        api.delete(path).await,
        api.patch(path, "{}").await,
        api.post(&format!("{path}/move"), room).await,
        api.get(&format!("{path}/state")).await,
        api.get(&format!("{path}/readings")).await,
        api.post(&format!("{path}/readings"), r#"{"readings":[{"value":1}]}"#)
            .await,
        api.get(&format!("{path}/clients")).await,
    ] {
        response.problem(404, "NotFound");
    }
}

#[tokio::test]
async fn invalid_sensors_are_rejected() {
    let api = TestApi::start().await;
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
        api.post("/v1/sensors", &bad.to_string())
            .await
            .problem(400, "Invalid");
    }
    for body in ["{}", "[]", "null"] {
        api.post("/v1/sensors", body).await.problem(400, "Invalid");
    }
    api.post("/v1/sensors", "{")
        .await
        .problem(400, "InvalidJson");
    let mut more = good.clone();
    more["colour"] = json!("red");
    api.post("/v1/sensors", &more.to_string())
        .await
        .problem(400, "Invalid");
    api.get("/v1/sensors/no%20spaces")
        .await
        .problem(400, "InvalidPath");
    api.request("PUT", "/v1/sensors")
        .send()
        .await
        .problem(405, "MethodNotAllowed");
}

#[tokio::test]
async fn readings_are_saved_and_read_exactly() {
    let api = TestApi::start().await;
    register(&api, "t-1", "13").await;
    let path = "/v1/sensors/t-1/readings";
    let body = r#"{"readings":[
        {"value":21.500000000000000000000000001,"unit":"°C","time":"2026-01-31T11:00:00+01:00","sequence":1},
        {"value":"open","time":1769857201},
        {"value":true,"time":"2026-01-31T11:00:02Z"},
        {"value":9007199254740993}]}"#;
    api.post(path, body).await.ok(204);
    api.post(path, body).await.ok(204);
    let response = api.get(path).await;
    let latest = response.ok(200);
    assert_eq!(latest["readings"].as_array().unwrap().len(), 4, "{latest}");
    assert_eq!(
        latest["readings"][0]["time"], "2026-01-31T12:00:00Z",
        "the current time by default"
    );
    assert_eq!(latest["readings"][3]["time"], "2026-01-31T10:00:00Z");
    for digits in ["21.500000000000000000000000001", "9007199254740993"] {
        assert!(response.text.contains(digits), "{}", response.text);
    }
    let newest = api.get(&format!("{path}?limit=1")).await.ok(200);
    assert_eq!(newest["readings"].as_array().unwrap().len(), 1);
    let span = "from=2026-01-31T10:00:00Z&to=2026-01-31T12:00:00Z&limit=2";
    let first = api.get(&format!("{path}?{span}")).await.ok(200);
    let next = first["nextCursor"].as_str().unwrap();
    let second = api
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
    let newest_first = format!("{path}?{span}&newestFirst=true");
    let newest = api.get(&newest_first).await.ok(200);
    let times: Vec<&Value> = newest["readings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|reading| &reading["time"])
        .collect();
    assert_eq!(times, ["2026-01-31T11:00:02Z", "2026-01-31T11:00:01Z"]);
    let next = newest["nextCursor"].as_str().unwrap();
    let oldest = api.get(&format!("{newest_first}&cursor={next}")).await;
    assert_eq!(
        oldest.ok(200)["readings"][0]["time"],
        "2026-01-31T10:00:00Z"
    );
    let mixed = api.get(&format!("{path}?{span}&cursor={next}")).await;
    mixed.problem(400, "Invalid");
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
        api.post(path, bad).await.problem(400, "Invalid");
    }
    api.get(&format!("{path}?cursor=00"))
        .await
        .problem(400, "Invalid");
    for query in ["limit=0", "limit=1001", "from=yesterday"] {
        api.get(&format!("{path}?{query}"))
            .await
            .problem(400, "InvalidQuery");
    }
    api.get(&format!("{path}?from=2026-01-31T10:00:00Z&cursor=00"))
        .await
        .problem(400, "Invalid");
}

#[tokio::test]
async fn large_readings_are_paged() {
    let api = TestApi::start().await;
    register(&api, "t-1", "13").await;
    let path = "/v1/sensors/t-1/readings";
    let text = "x".repeat(1000);
    for hour in 0..14 {
        let readings: Vec<Value> = (0..90)
            .map(|n| json!({"value": text, "time": format!("2026-01-30T{hour:02}:{:02}:{:02}Z", n / 60, n % 60), "sequence": n}))
            .collect();
        api.post(path, &json!({"readings": readings}).to_string())
            .await
            .ok(204);
    }
    let (mut seen, mut bytes, mut cursor) = (Vec::new(), 0, String::new());
    loop {
        let response = api
            .get(&format!(
                "{path}?from=2026-01-30T00:00:00Z&limit=1000{cursor}"
            ))
            .await;
        bytes += response.text.len();
        let page = response.ok(200);
        let times = page["readings"].as_array().unwrap().iter();
        seen.extend(times.map(|reading| {
            (
                reading["time"].as_str().unwrap().to_owned(),
                reading["sequence"].as_u64(),
            )
        }));
        match page["nextCursor"].as_str() {
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
async fn states_and_locations_list_the_latest_values() {
    let api = TestApi::start().await;
    for (id, room) in [("a", "13"), ("b", "13"), ("c", "14")] {
        register(&api, id, room).await;
    }
    let state = api.get("/v1/sensors/a/state").await.ok(200);
    assert_eq!(
        (&state["connection"], state.get("value")),
        (&json!("NEVER"), None)
    );
    let now = api.clock.now();
    let id = SensorId::new("a").unwrap();
    let signal = Signal::new(id, Measured::whole(1), None, None, now, "m").unwrap();
    api.sensors.record(&signal).await.unwrap();
    let state = api.get("/v1/sensors/a/state").await.ok(200);
    assert_eq!(
        (&state["connection"], &state["value"]),
        (&json!("ONLINE"), &json!(1))
    );
    assert_eq!(state["lastSeen"], "2026-01-31T12:00:00Z");
    assert_eq!(state["deadline"], "2026-01-31T12:01:00Z");

    let city = "/v1/locations/Pozna%C5%84";
    let ids = async |path: &str| {
        let page = api.get(path).await.ok(200);
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
    let next = page["nextCursor"].as_str().unwrap();
    let (rest, _) = ids(&format!("{city}/sensors?limit=2&cursor={next}")).await;
    assert_eq!([first, rest].concat(), ["a", "b", "c"]);
    api.get(&format!("{city}/A/sensors?limit=2&cursor={next}"))
        .await
        .problem(400, "Invalid");
    api.get("/v1/locations/%20x/sensors")
        .await
        .problem(400, "InvalidPath");
    api.get(&format!("{city}/sensors?limit=0"))
        .await
        .problem(400, "InvalidQuery");
}

#[tokio::test]
async fn all_sensors_are_listed_by_id_in_pages() {
    let api = TestApi::start().await;
    let empty = api.get("/v1/sensors").await.ok(200);
    assert_eq!(empty, json!({"sensors": []}));
    for (id, room) in [("c", "1"), ("a", "3"), ("b", "2")] {
        register(&api, id, room).await;
    }
    let ids = |page: &Value| -> Vec<Value> {
        let sensors = page["sensors"].as_array().unwrap().iter();
        sensors.map(|sensor| sensor["id"].clone()).collect()
    };
    let first = api.get("/v1/sensors?limit=2").await.ok(200);
    assert_eq!(ids(&first), ["a", "b"]);
    assert_eq!(first["sensors"][0]["location"]["room"], "3");
    assert_eq!(first["sensors"][0]["state"]["connection"], "NEVER");
    let next = first["nextCursor"].as_str().unwrap();
    let path = format!("/v1/sensors?limit=2&cursor={next}");
    let rest = api.get(&path).await.ok(200);
    assert_eq!(
        (ids(&rest), rest.get("nextCursor")),
        (vec![json!("c")], None)
    );
    for query in ["limit=0", "limit=1001", "city=Lund"] {
        api.get(&format!("/v1/sensors?{query}"))
            .await
            .problem(400, "InvalidQuery");
    }
    let of_place = format!("/v1/locations/Lund/sensors?cursor={next}");
    for path in ["/v1/sensors?cursor=00", &of_place] {
        api.get(path).await.problem(400, "Invalid");
    }
}

#[tokio::test]
async fn of_many_registrations_at_once_one_is_created() {
    let api = TestApi::start().await;
    let body = lock("door", "13");
    let all = (0..12).map(|_| api.post("/v1/sensors", &body));
    let all = futures_util::future::join_all(all).await;
    let of = |status: u16| all.iter().filter(move |response| response.status == status);
    assert_eq!(of(201).count(), 1);
    // A throttled transaction may be sent again.
    assert_eq!(of(409).count() + of(503).count(), 11, "{all:?}");
    let with_key = || {
        let request = api.request("POST", "/v1/sensors");
        request
            .header("idempotency-key", "k")
            .json(&lock("other", "1"))
            .send()
    };
    let first = with_key().await;
    assert_eq!(first.status, 201);
    assert_eq!(
        with_key().await.ok(201),
        first.ok(201),
        "the first response again"
    );
}

#[tokio::test]
async fn a_sensor_is_put() {
    let api = TestApi::start().await;
    let path = "/v1/sensors/door";
    let put = |body: &'static str| api.request("PUT", path).json(body).send();
    let created = put(r#"{"address":"left","type":"lock"}"#).await;
    assert_eq!(created.header("location"), Some(path));
    assert_eq!(created.ok(201)["version"], 1);
    assert_eq!(
        put(r#"{"address":"left","type":"lock"}"#).await.ok(200)["version"],
        1
    );
    let location = r#"{"location":{"city":"Lund","building":"A","floor":"1","room":"2"}}"#;
    let moved = put(location).await;
    assert_eq!(moved.header("etag"), Some("\"2\""));
    let moved = moved.ok(200);
    assert_eq!(
        (&moved["address"], &moved["type"]),
        (&json!(""), &json!("sensor"))
    );
    let listed = api.get("/v1/locations/Lund/sensors").await.ok(200);
    assert_eq!(listed["sensors"][0]["id"], "door");
    let with = |path: &'static str, tag: &'static str| {
        let request = api.request("PUT", path).header("if-match", tag);
        request.json(r#"{"address":"right"}"#).send()
    };
    with(path, "\"1\"").await.problem(412, "PreconditionFailed");
    assert_eq!(with(path, "\"2\"").await.ok(200)["version"], 3);
    with("/v1/sensors/none", "*").await.problem(404, "NotFound");
    put(r#"{"id":"door"}"#).await.problem(400, "Invalid");
}

#[tokio::test]
async fn a_sensor_needs_no_location() {
    let api = TestApi::start().await;
    let body = r#"{"id":"xa7v9Dfadr7H","address":"Main street 1"}"#;
    let created = api.post("/v1/sensors", body).await.ok(201);
    assert!(created.get("location").is_none(), "{created}");
    let listed = api.get("/v1/sensors").await.ok(200);
    assert_eq!(listed["sensors"][0]["address"], "Main street 1");
    assert!(listed["sensors"][0].get("location").is_none());
    let room = r#"{"city":"Lund","building":"A","floor":"1","room":"2"}"#;
    let moved = api
        .post("/v1/sensors/xa7v9Dfadr7H/move", room)
        .await
        .ok(200);
    assert_eq!(moved["location"]["city"], "Lund");
}

#[tokio::test]
async fn readings_come_with_their_sensor_and_are_paged_newest_first() {
    let api = TestApi::start().await;
    register(&api, "t-1", "13").await;
    let path = "/v1/sensors/t-1/readings";
    let readings: Vec<Value> = (0..7)
        .map(|n| json!({"value": n, "time": format!("2026-01-31T11:00:0{n}Z")}))
        .collect();
    let body = json!({ "readings": readings }).to_string();
    api.post(path, &body).await.ok(204);
    api.endpoint.take_calls();
    let first = api.get(&format!("{path}?limit=3")).await.ok(200);
    assert_eq!(api.endpoint.take_operations(), ["Query"]);
    assert_eq!(first["sensor"]["id"], "t-1");
    assert_eq!(first["sensor"]["location"]["room"], "13");
    let (mut values, mut page) = (Vec::new(), first);
    loop {
        values.extend(
            page["readings"]
                .as_array()
                .unwrap()
                .iter()
                .map(|r| r["value"].clone()),
        );
        let Some(next) = page["nextCursor"].as_str() else {
            break;
        };
        page = api
            .get(&format!("{path}?limit=3&cursor={next}"))
            .await
            .ok(200);
        assert_eq!(page["sensor"]["id"], "t-1");
    }
    assert_eq!(values, (0..7).rev().map(|n| json!(n)).collect::<Vec<_>>());
    let range = format!("{path}?from=2026-01-31T11:00:05Z");
    let range = api.get(&range).await.ok(200);
    assert_eq!(
        (&range["sensor"]["id"], &range["readings"][0]["value"]),
        (&json!("t-1"), &json!(5))
    );
}

#[tokio::test]
async fn sensors_are_filtered() {
    let api = TestApi::start().await;
    for id in ["ab-1", "ab-2", "b-1"] {
        register(&api, id, "13").await;
    }
    api.post("/v1/sensors", r#"{"id":"ab-3","type":"gas"}"#)
        .await
        .ok(201);
    let signal = r#"{"signals":[{"sensor_id":"ab-2","data":1}]}"#;
    api.post("/v1/signals", signal).await.ok(200);
    for (query, wanted) in [
        ("/v1/sensors?prefix=ab-", "ab-1 ab-2 ab-3"),
        ("/v1/sensors?type=gas", "ab-3"),
        ("/v1/sensors?connection=ONLINE", "ab-2"),
        ("/v1/sensors?connection=LOST", ""),
        ("/v1/sensors?prefix=ab&type=lock&connection=NEVER", "ab-1"),
        ("/v1/locations/Pozna%C5%84/sensors?prefix=b", "b-1"),
    ] {
        let page = api.get(query).await.ok(200);
        let ids = page["sensors"].as_array().unwrap().iter();
        let ids: Vec<&str> = ids.map(|sensor| sensor["id"].as_str().unwrap()).collect();
        assert_eq!(ids.join(" "), wanted, "{query}");
    }
    for query in ["type=a%20b", "connection=lost"] {
        let path = format!("/v1/sensors?{query}");
        api.get(&path).await.problem(400, "InvalidQuery");
    }
}

#[tokio::test]
async fn signals_are_recorded_with_their_further_fields() {
    let api = TestApi::start().await;
    register(&api, "door", "13").await;
    let body = r#"{"signals":[
        {"sensor_id":"door","data":0,"ts":"2026-01-31T11:00:00Z"},
        {"sensor_id":"door","data":1,"ts":"2026-01-31T11:00:01Z","seq":7,"battery":80.50,"radio":{"rssi":-70}},
        {"sensor_id":"door","data":1,"ts":"2026-01-31T11:00:02Z"},
        {"sensor_id":"door","data":2},
        {"sensor_id":"door","data":true},
        {"sensor_id":"door","data":"1"},
        {"sensor_id":"none","data":1},
        {"marker":"liveness"},
        7]}"#;
    let done = api.post("/v1/signals", body).await.ok(200);
    let results = done["results"].as_array().unwrap();
    let results: Vec<String> = results
        .iter()
        .map(|result| format!("{} {}", result["status"], result["outcome"]))
        .collect();
    let invalid = "400 null";
    let wanted = [
        r#"200 "first""#,
        r#"200 "changed""#,
        r#"200 "same""#,
        invalid,
        invalid,
        invalid,
        "404 null",
        invalid,
        invalid,
    ];
    assert_eq!(results, wanted, "{done}");
    assert_eq!(
        done["results"][3]["error"]["detail"],
        "data is 2, expected 0 or 1"
    );
    let latest = api.get("/v1/sensors/door/readings").await.ok(200);
    assert_eq!(latest["readings"].as_array().unwrap().len(), 3);
    assert_eq!(
        latest["readings"][1]["fields"],
        json!({"battery": 80.5, "radio": {"rssi": -70}})
    );
    assert!(latest["readings"][0].get("fields").is_none());
    assert_eq!(api.get("/v1/sensors/door/state").await.ok(200)["value"], 1);
    for bad in [
        r#"{"signals":[]}"#,
        "{}",
        r#"{"sensor_id":"door","data":1}"#,
    ] {
        api.post("/v1/signals", bad).await.problem(400, "Invalid");
    }
}
