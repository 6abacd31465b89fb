//! The HTTP API on the whole stack: from a request to the table, the queue and a webhook.

use antumbra_local::stack::Options;
use serde_json::{Value, json};

use crate::support::{Home, TOKEN, eventually};
use crate::webhooks::endpoint::Endpoints;

#[tokio::test]
async fn a_client_created_over_http_gets_a_delivery() {
    let home = Home::with_api(Options::default()).await;
    let none = Value::Null;
    for (path, token, status) in [
        ("/health", "", 200),
        ("/v1/clients", "Bearer wrong", 401),
        ("/v1/clients", &format!("Bearer {TOKEN}"), 200),
    ] {
        let headers = [("authorization", token)];
        let (actual, problem) = home.call_api("GET", path, &headers, &none).await;
        assert_eq!(actual, status, "{problem}");
        assert_eq!(problem["code"] == "Unauthorized", status == 401);
    }
    let endpoints = Endpoints::start().await;
    let client = json!({
        "id": "night-watch", "name": "Night watch", "url": endpoints.url("hook"), "mode": "latest",
    });
    let (status, made) = home.call_api("POST", "/v1/clients", &[], &client).await;
    assert_eq!(status, 201, "{made}");
    let test = "/v1/clients/night-watch/test";
    let (status, queued) = home.call_api("POST", test, &[], &none).await;
    assert_eq!(status, 202, "{queued}");
    let id = queued["delivery"].as_str().unwrap();
    assert_eq!(endpoints.wait("hook", 1).await[0].id, id);

    let delivered = eventually("the history", async || {
        let path = "/v1/clients/night-watch/deliveries?status=delivered";
        home.get(path).await["deliveries"].get(0).cloned()
    })
    .await;
    assert_eq!(delivered["id"], id);
    assert_eq!(delivered["attempts"][0]["status"], 204);
    home.stop().await;
}
