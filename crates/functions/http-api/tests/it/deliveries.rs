//! Deliveries, route by route.

use std::time::Duration;

use antumbra_service::clock::Clock as _;
use antumbra_service::deliveries::{
    Delivery, DeliveryId, DeliveryMessage, DeliveryStore as _, EventType, History, NewDeliveries,
    Status, Transition,
};
use serde_json::{Value, json};

use crate::clients::sensor;
use crate::support::TestApi;

async fn client(api: &TestApi, mode: &str) {
    let body = json!({"id": "night-watch", "name": "Night watch", "url": "http://127.0.0.1:9999/hook", "mode": mode});
    api.post("/v1/clients", &body.to_string()).await.ok(201);
}

#[tokio::test]
async fn a_test_delivery_is_queued_listed_and_redelivered() {
    let api = TestApi::start().await;
    client(&api, "latest").await;
    let path = "/v1/clients/night-watch";
    let response = api
        .request("POST", &format!("{path}/test"))
        .send()
        .await
        .ok(202);
    let id = response["delivery"].as_str().unwrap().to_owned();
    let messages = api.queues[1].bodies();
    assert!(
        messages.len() == 1 && messages[0].contains(&id),
        "{messages:?}"
    );

    let page = api.get(&format!("{path}/deliveries")).await.ok(200);
    let delivery = &page["deliveries"][0];
    assert_eq!(delivery["id"], id.as_str());
    assert_eq!(
        (&delivery["type"], &delivery["status"]),
        (&json!("client.test"), &json!("pending"))
    );
    assert_eq!(delivery["client"], "night-watch");
    assert_eq!(delivery["attempts"], json!([]));

    let again = api
        .request("POST", &format!("/v1/deliveries/{id}/redeliver"))
        .send()
        .await;
    assert_eq!(again.ok(202)["delivery"], id.as_str());
    let parsed: DeliveryId = id.parse().unwrap();
    let record = api.deliveries.get(&parsed).await.unwrap().unwrap();
    assert_eq!((record.progress.round, record.progress.manual), (1, true));

    for (query, count) in [
        ("status=pending", 1),
        ("status=delivered", 0),
        ("from=2026-01-31T12:00:00Z", 1),
        ("from=2026-01-31T12:00:01Z", 0),
        ("to=2026-01-31T12:00:00Z", 0),
        ("oldestFirst=true&limit=1", 1),
    ] {
        let page = api.get(&format!("{path}/deliveries?{query}")).await.ok(200);
        assert_eq!(
            page["deliveries"].as_array().unwrap().len(),
            count,
            "{query}"
        );
    }
    for query in ["status=lost", "from=x", "limit=0", "a=b"] {
        api.get(&format!("{path}/deliveries?{query}"))
            .await
            .problem(400, "InvalidQuery");
    }
    api.get(&format!("{path}/deliveries?cursor=00"))
        .await
        .problem(400, "Invalid");
    api.request("POST", "/v1/deliveries/none/redeliver")
        .send()
        .await
        .problem(400, "InvalidPath");
    let other = id.replace("night-watch", "day-watch");
    api.request("POST", &format!("/v1/deliveries/{other}/redeliver"))
        .send()
        .await
        .problem(404, "NotFound");
}

#[tokio::test]
async fn pages_of_deliveries_are_complete() {
    let api = TestApi::start().await;
    client(&api, "every").await;
    let mut created = Vec::new();
    for _ in 0..5 {
        api.clock.advance(std::time::Duration::from_secs(1));
        let response = api
            .request("POST", "/v1/clients/night-watch/test")
            .send()
            .await
            .ok(202);
        created.push(response["delivery"].as_str().unwrap().to_owned());
    }
    created.reverse();
    let (mut seen, mut cursor): (Vec<Value>, String) = (Vec::new(), String::new());
    loop {
        let page = api
            .get(&format!(
                "/v1/clients/night-watch/deliveries?limit=2{cursor}"
            ))
            .await
            .ok(200);
        seen.extend(
            page["deliveries"]
                .as_array()
                .unwrap()
                .iter()
                .map(|delivery| delivery["id"].clone()),
        );
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(seen, created);
}

#[tokio::test]
async fn a_client_is_enabled_and_a_sensor_lists_its_deliveries() {
    let api = TestApi::start().await;
    client(&api, "every").await;
    let enabled = api
        .request("POST", "/v1/clients/night-watch/enable")
        .send()
        .await
        .ok(200);
    assert_eq!(enabled, json!({"queued": 0, "releasing": false}));
    sensor(&api, "door").await;
    let page = api.get("/v1/sensors/door/deliveries").await.ok(200);
    assert_eq!(page, json!({"deliveries": []}));
    api.get("/v1/sensors/door/deliveries?status=none")
        .await
        .problem(400, "InvalidQuery");
    for unknown in ["sensors/none", "clients/none"] {
        let path = format!("/v1/{unknown}/deliveries");
        api.get(&path).await.problem(404, "NotFound");
    }
    api.get("/v1/sensors/a%20b/deliveries")
        .await
        .problem(400, "InvalidPath");
}

/// A queue can lose a message; in the history the delivery then waits for an attempt.
#[tokio::test]
async fn redeliver_finds_deliveries_that_wait_for_an_attempt() {
    let api = TestApi::start().await;
    client(&api, "every").await;
    let path = "/v1/clients/night-watch";
    let queued = api.request("POST", &format!("{path}/test")).send().await;
    let id = queued.ok(202)["delivery"].as_str().unwrap().to_owned();
    let again = format!("{path}/redeliver?since=2026-01-31T12:00:00Z");
    let again = api.request("POST", &again).send().await.ok(202);
    assert_eq!(again["queued"], 1);
    let bodies = api.queues[0].bodies();
    assert!(
        bodies.len() == 2 && bodies.iter().all(|body| body.contains(&id)),
        "{bodies:?}"
    );
}

#[tokio::test]
async fn deliveries_since_a_time_are_queued_in_parts() {
    let api = TestApi::start().await;
    client(&api, "every").await;
    let id = antumbra_service::clients::ClientId::new("night-watch").unwrap();
    let noon = api.clock.now();
    let mut dead = Vec::new();
    for second in 0..120_u64 {
        let at = noon.after(Duration::from_secs(second));
        let delivery = Delivery {
            id: DeliveryId::new(&id, at, second, "door"),
            event_type: EventType::ClientTest,
            sequence: second,
            number: 0,
            occurred_at: at,
            sensor: None,
            data: serde_json::from_str("{}").unwrap(),
        };
        // Every tenth arrived, and those before 12:00:10 are too old.
        let status = match second % 10 {
            0 => Status::Delivered,
            _ => Status::Dead,
        };
        api.deliveries.add(&delivery, at).await.unwrap();
        let message = DeliveryMessage::first(&delivery);
        let context = api.deliveries.context(&message).await.unwrap();
        let settled = Transition {
            context: &context,
            record: context.record.as_ref().unwrap(),
            message: &message,
            claim: None,
            status,
            attempts: Vec::new(),
            wait: None,
            in_order: false,
            now: at,
        };
        api.deliveries.save(&settled).await.unwrap();
        if status == Status::Dead && second >= 10 {
            dead.push(delivery.id.to_string());
        }
    }
    let again = |query: String| {
        let path = format!("/v1/clients/night-watch/redeliver?{query}");
        let request = api.request("POST", &path);
        async move { request.send().await }
    };
    let (mut queued, mut parts, mut cursor) = (0, 0, String::new());
    loop {
        let part = again(format!("since=2026-01-31T12:00:10Z{cursor}")).await;
        let part = part.ok(202);
        queued += part["queued"].as_u64().unwrap();
        parts += 1;
        match part["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!((queued, parts > 1), (dead.len() as u64, true));
    let bodies = api.queues[0].bodies();
    assert_eq!(bodies.len(), dead.len());
    for (body, id) in bodies.iter().zip(&dead) {
        assert!(body.contains(id.as_str()), "{id} is not in {body}");
    }
    // A delivery that may have been lost in the queue is found too.
    let more = again("since=2026-01-31T12:01:50Z&delivered=true".to_owned()).await;
    assert_eq!(more.ok(202)["queued"], 10);

    for query in ["", "since=x", "since=2026-01-31T12:00:10Z&a=b"] {
        again(query.to_owned()).await.problem(400, "InvalidQuery");
    }
    again("since=2026-01-31T12:00:10Z&cursor=00".to_owned())
        .await
        .problem(400, "Invalid");
    api.request(
        "POST",
        "/v1/clients/nobody/redeliver?since=2026-01-31T12:00:10Z",
    )
    .send()
    .await
    .problem(404, "NotFound");
}
