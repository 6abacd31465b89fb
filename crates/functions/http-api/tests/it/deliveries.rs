//! Deliveries, route by route.

use antumbra_service::deliveries::{DeliveryId, History};
use serde_json::{Value, json};

use crate::clients::sensor;
use crate::ground::Ground;

async fn client(ground: &Ground, mode: &str) {
    let body = json!({"id": "night-watch", "name": "Night watch", "url": "http://127.0.0.1:9999/hook", "mode": mode});
    ground.post("/v1/clients", &body.to_string()).await.ok(201);
}

#[tokio::test]
async fn a_test_is_queued_kept_in_the_history_and_queued_again() {
    let ground = Ground::start().await;
    client(&ground, "latest").await;
    let path = "/v1/clients/night-watch";
    let got = ground
        .ask("POST", &format!("{path}/test"))
        .send()
        .await
        .ok(202);
    let id = got["delivery"].as_str().unwrap().to_owned();
    let messages = ground.queues[1].bodies();
    assert!(
        messages.len() == 1 && messages[0].contains(&id),
        "{messages:?}"
    );

    let page = ground.get(&format!("{path}/deliveries")).await.ok(200);
    let delivery = &page["deliveries"][0];
    assert_eq!(delivery["id"], id.as_str());
    assert_eq!(
        (&delivery["type"], &delivery["status"]),
        (&json!("client.test"), &json!("pending"))
    );
    assert_eq!(delivery["client"], "night-watch");
    assert_eq!(delivery["attempts"], json!([]));

    let again = ground
        .ask("POST", &format!("/v1/deliveries/{id}/redeliver"))
        .send()
        .await;
    assert_eq!(again.ok(202)["delivery"], id.as_str());
    let parsed: DeliveryId = id.parse().unwrap();
    let record = ground.deliveries.get(&parsed).await.unwrap().unwrap();
    assert_eq!(record.delivery.round, 1);

    for (query, count) in [
        ("status=pending", 1),
        ("status=delivered", 0),
        ("from=2026-01-31T12:00:00Z", 1),
        ("from=2026-01-31T12:00:01Z", 0),
        ("to=2026-01-31T12:00:00Z", 0),
        ("oldestFirst=true&limit=1", 1),
    ] {
        let page = ground
            .get(&format!("{path}/deliveries?{query}"))
            .await
            .ok(200);
        assert_eq!(
            page["deliveries"].as_array().unwrap().len(),
            count,
            "{query}"
        );
    }
    for query in ["status=lost", "from=x", "limit=0", "a=b"] {
        ground
            .get(&format!("{path}/deliveries?{query}"))
            .await
            .problem(400, "InvalidQuery");
    }
    ground
        .get(&format!("{path}/deliveries?cursor=00"))
        .await
        .problem(400, "Invalid");
    ground
        .ask("POST", "/v1/deliveries/none/redeliver")
        .send()
        .await
        .problem(400, "InvalidPath");
    let other = id.replace("night-watch", "day-watch");
    ground
        .ask("POST", &format!("/v1/deliveries/{other}/redeliver"))
        .send()
        .await
        .problem(404, "NotFound");
}

#[tokio::test]
async fn a_page_goes_on_where_the_one_before_ended() {
    let ground = Ground::start().await;
    client(&ground, "every").await;
    let mut made = Vec::new();
    for _ in 0..5 {
        ground.clock.advance(std::time::Duration::from_secs(1));
        let got = ground
            .ask("POST", "/v1/clients/night-watch/test")
            .send()
            .await
            .ok(202);
        made.push(got["delivery"].as_str().unwrap().to_owned());
    }
    made.reverse();
    let (mut seen, mut cursor): (Vec<Value>, String) = (Vec::new(), String::new());
    loop {
        let page = ground
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
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(seen, made);
}

#[tokio::test]
async fn a_client_is_enabled_and_a_sensor_has_a_history() {
    let ground = Ground::start().await;
    client(&ground, "every").await;
    let enabled = ground
        .ask("POST", "/v1/clients/night-watch/enable")
        .send()
        .await
        .ok(200);
    assert_eq!(enabled["queued"], 0);
    sensor(&ground, "door").await;
    let page = ground.get("/v1/sensors/door/history").await.ok(200);
    assert_eq!(page, json!({"deliveries": []}));
    ground
        .get("/v1/sensors/door/history?status=none")
        .await
        .problem(400, "InvalidQuery");
    ground
        .get("/v1/sensors/a%20b/history")
        .await
        .problem(400, "InvalidPath");
}
