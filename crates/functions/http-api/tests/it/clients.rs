//! `/v1/clients` and links, route by route.

use std::time::Duration;

use antumbra_testkit::dynamodb::Reply;
use serde_json::{Value, json};

use crate::ground::Ground;

const CLIENT: &str =
    r#"{"id":"night-watch","name":"Night watch","url":"http://127.0.0.1:9999/hook"}"#;

pub(crate) async fn sensor(ground: &Ground, id: &str) {
    let location = json!({"city": "Poznań", "building": "A", "floor": "2", "room": "13"});
    let body = json!({"id": id, "location": location}).to_string();
    ground.post("/v1/sensors", &body).await.ok(201);
}

#[tokio::test]
async fn a_client_is_made_read_changed_and_deleted_and_its_secret_told_once() {
    let ground = Ground::start().await;
    let got = ground.post("/v1/clients", CLIENT).await;
    assert_eq!(got.header("location"), Some("/v1/clients/night-watch"));
    assert_eq!(got.header("cache-control"), Some("no-store"));
    let made = got.ok(201);
    let secret = made["secret"].as_str().unwrap();
    assert!(secret.starts_with("whsec_"));
    assert_eq!(made["mode"], "every");
    ground
        .post("/v1/clients", CLIENT)
        .await
        .problem(409, "AlreadyExists");

    let path = "/v1/clients/night-watch";
    let got = ground.get(path).await;
    let read = got.ok(200);
    assert_eq!(
        (&read["version"], &read["enabled"]),
        (&json!(1), &json!(true))
    );
    assert!(read.get("secret").is_none() && !got.text.contains(secret));
    let page = ground.get("/v1/clients").await;
    assert_eq!(page.ok(200)["clients"][0]["id"], "night-watch");
    assert!(!page.text.contains("whsec_"));

    let with = |tag: &'static str, body: &'static str| {
        ground
            .ask("PATCH", path)
            .header("if-match", tag)
            .json(body)
            .send()
    };
    with("\"9\"", r#"{"name":"x"}"#)
        .await
        .problem(412, "PreconditionFailed");
    let got = with("\"1\"", r#"{"mode":"latest"}"#).await;
    assert_eq!(got.header("etag"), Some("\"2\""));
    assert_eq!(got.ok(200)["mode"], "latest");

    let got = ground
        .ask(
            "POST",
            &format!("{path}/rotate-secret?keepPreviousSeconds=60"),
        )
        .send()
        .await;
    let rotated = got.ok(200);
    assert_ne!(rotated["secret"], made["secret"]);
    assert_eq!(rotated["previousUntil"], "2026-01-31T12:01:00Z");
    assert_eq!(got.header("cache-control"), Some("no-store"));
    let too_long = ground
        .ask(
            "POST",
            &format!("{path}/rotate-secret?keepPreviousSeconds=99999999"),
        )
        .send()
        .await;
    too_long.problem(400, "Invalid");

    ground
        .ask("DELETE", path)
        .header("if-match", "\"1\"")
        .send()
        .await
        .problem(412, "PreconditionFailed");
    ground.delete(path).await.ok(204);
    for got in [
        ground.get(path).await,
        ground.delete(path).await,
        ground.patch(path, "{}").await,
        ground
            .ask("POST", &format!("{path}/rotate-secret"))
            .send()
            .await,
        ground.ask("POST", &format!("{path}/test")).send().await,
        ground.ask("POST", &format!("{path}/enable")).send().await,
        ground.get(&format!("{path}/sensors")).await,
    ] {
        got.problem(404, "NotFound");
    }
}

#[tokio::test]
async fn what_is_no_client_is_refused() {
    let ground = Ground::start().await;
    for body in [
        r#"{}"#,
        r#"{"name":"","url":"https://example.com/"}"#,
        r#"{"name":"a","url":"https://example.com/","id":"a b"}"#,
        r#"{"name":"a","url":"https://example.com/","mode":"some"}"#,
        r#"{"name":"a","url":"https://example.com/","secret":"whsec_x"}"#,
        r#"{"name":"a","url":"http://8.8.8.8/"}"#,
        r#"{"name":"a","url":"https://10.0.0.1/"}"#,
        r#"{"name":"a","url":"https://169.254.169.254/latest/meta-data"}"#,
        r#"{"name":"a","url":"https://[::1]/"}"#,
        r#"{"name":"a","url":"file:///etc/passwd"}"#,
        r#"{"name":"a","url":"not a url"}"#,
    ] {
        ground
            .post("/v1/clients", body)
            .await
            .problem(400, "Invalid");
    }
    ground
        .get("/v1/clients/a.b")
        .await
        .problem(400, "InvalidPath");
    ground
        .get("/v1/clients?limit=0")
        .await
        .problem(400, "InvalidQuery");
    ground
        .get("/v1/clients?cursor=00")
        .await
        .problem(400, "Invalid");
    ground.post("/v1/clients", CLIENT).await.ok(201);
    let patched = ground
        .patch(
            "/v1/clients/night-watch",
            r#"{"url":"https://192.168.0.1/"}"#,
        )
        .await;
    patched.problem(400, "Invalid");
}

#[tokio::test]
async fn links_are_listed_from_both_sides() {
    let ground = Ground::start().await;
    ground.post("/v1/clients", CLIENT).await.ok(201);
    for id in ["a", "b", "c"] {
        sensor(&ground, id).await;
        let link = format!("/v1/clients/night-watch/sensors/{id}");
        ground.ask("PUT", &link).send().await.ok(204);
        ground.ask("PUT", &link).send().await.ok(204);
    }
    let sensors = |page: &Value| -> Vec<String> {
        let links = page["links"].as_array().unwrap().iter();
        links
            .map(|link| link["sensor"].as_str().unwrap().to_owned())
            .collect()
    };
    let first = ground
        .get("/v1/clients/night-watch/sensors?limit=2")
        .await
        .ok(200);
    let next = first["next"].as_str().unwrap();
    let rest = ground
        .get(&format!(
            "/v1/clients/night-watch/sensors?limit=2&cursor={next}"
        ))
        .await
        .ok(200);
    assert_eq!([sensors(&first), sensors(&rest)].concat(), ["a", "b", "c"]);
    let clients = ground.get("/v1/sensors/b/clients").await.ok(200);
    assert_eq!(clients["links"][0]["client"], "night-watch");

    ground
        .delete("/v1/clients/night-watch")
        .await
        .problem(409, "HasLinks");
    ground
        .delete("/v1/clients/night-watch/sensors/a")
        .await
        .ok(204);
    ground
        .delete("/v1/clients/night-watch/sensors/a")
        .await
        .problem(404, "NotFound");
    ground
        .ask("PUT", "/v1/clients/night-watch/sensors/none")
        .send()
        .await
        .problem(404, "NotFound");
    ground
        .ask("PUT", "/v1/clients/nobody/sensors/b")
        .send()
        .await
        .problem(404, "NotFound");
    ground
        .ask("PUT", "/v1/clients/night-watch/sensors/a%20b")
        .send()
        .await
        .problem(400, "InvalidPath");
    ground
        .delete("/v1/clients/night-watch?cascade=true")
        .await
        .ok(204);
    let clients = ground.get("/v1/sensors/b/clients").await.ok(200);
    assert_eq!(clients["links"], json!([]));
}

#[tokio::test]
async fn a_client_made_by_somebody_who_died_is_not_made_twice() {
    let ground = Ground::start().await;
    let body = r#"{"name":"Night watch","url":"http://127.0.0.1:9999/hook"}"#;
    let make = || {
        ground
            .ask("POST", "/v1/clients")
            .header("idempotency-key", "k")
            .json(body)
            .send()
    };
    // The client is written, and then nothing more is heard: as if the process had died.
    ground
        .endpoint
        .script(|call| match call.operation.as_str() {
            "UpdateItem" if call.body.to_string().contains("ONCE#") => {
                Reply::fail(500, "InternalServerError")
            }
            _ => Reply::Pass,
        });
    let lost = make().await.ok(201);
    ground.endpoint.script(|_| Reply::Pass);
    make().await.problem(409, "InFlight");
    ground.clock.advance(Duration::from_secs(36));
    let made = make().await.ok(201);
    assert_eq!(made, lost, "the same client with the same secret");
    assert_eq!(make().await.ok(201), made);
    let all = ground.get("/v1/clients").await.ok(200);
    assert_eq!(all["clients"].as_array().unwrap().len(), 1);
}
