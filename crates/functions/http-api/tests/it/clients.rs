//! `/v1/clients` and links, route by route.

use std::time::Duration;

use antumbra_testkit::dynamodb::Reply;
use serde_json::{Value, json};

use crate::support::TestApi;

const CLIENT: &str =
    r#"{"id":"night-watch","name":"Night watch","url":"http://127.0.0.1:9999/hook"}"#;

pub(crate) async fn sensor(api: &TestApi, id: &str) {
    let location = json!({"city": "Poznań", "building": "A", "floor": "2", "room": "13"});
    let body = json!({"id": id, "location": location}).to_string();
    api.post("/v1/sensors", &body).await.ok(201);
}

#[tokio::test]
async fn a_client_is_created_read_changed_and_deleted() {
    let api = TestApi::start().await;
    let response = api.post("/v1/clients", CLIENT).await;
    assert_eq!(response.header("location"), Some("/v1/clients/night-watch"));
    assert_eq!(response.header("cache-control"), Some("no-store"));
    let created = response.ok(201);
    let secret = created["secret"].as_str().unwrap();
    assert!(secret.starts_with("whsec_"));
    assert_eq!(created["mode"], "latest");
    api.post("/v1/clients", CLIENT)
        .await
        .problem(409, "AlreadyExists");

    let path = "/v1/clients/night-watch";
    let response = api.get(path).await;
    let read = response.ok(200);
    assert_eq!(
        (&read["version"], &read["enabled"]),
        (&json!(1), &json!(true))
    );
    assert!(read.get("secret").is_none() && !response.text.contains(secret));
    let page = api.get("/v1/clients").await;
    assert_eq!(page.ok(200)["clients"][0]["id"], "night-watch");
    assert!(!page.text.contains("whsec_"));

    let with = |tag: &'static str, body: &'static str| {
        api.request("PATCH", path)
            .header("if-match", tag)
            .json(body)
            .send()
    };
    with("\"9\"", r#"{"name":"x"}"#)
        .await
        .problem(412, "PreconditionFailed");
    let response = with("\"1\"", r#"{"mode":"latest"}"#).await;
    assert_eq!(response.header("etag"), Some("\"2\""));
    assert_eq!(response.ok(200)["mode"], "latest");

    let response = api
        .request(
            "POST",
            &format!("{path}/rotate-secret?keepPreviousSeconds=60"),
        )
        .send()
        .await;
    let rotated = response.ok(200);
    assert_ne!(rotated["secret"], created["secret"]);
    assert_eq!(rotated["previousUntil"], "2026-01-31T12:01:00Z");
    assert_eq!(response.header("cache-control"), Some("no-store"));
    let too_long = api
        .request(
            "POST",
            &format!("{path}/rotate-secret?keepPreviousSeconds=99999999"),
        )
        .send()
        .await;
    too_long.problem(400, "Invalid");

    api.request("DELETE", path)
        .header("if-match", "\"1\"")
        .send()
        .await
        .problem(412, "PreconditionFailed");
    api.delete(path).await.ok(204);
    for response in [
        api.get(path).await,
        api.delete(path).await,
        api.patch(path, "{}").await,
        api.request("POST", &format!("{path}/rotate-secret"))
            .send()
            .await,
        api.request("POST", &format!("{path}/test")).send().await,
        api.request("POST", &format!("{path}/enable")).send().await,
        api.get(&format!("{path}/sensors")).await,
    ] {
        response.problem(404, "NotFound");
    }
}

#[tokio::test]
async fn invalid_clients_are_rejected() {
    let api = TestApi::start().await;
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
        api.post("/v1/clients", body).await.problem(400, "Invalid");
    }
    api.get("/v1/clients/a.b").await.problem(400, "InvalidPath");
    api.get("/v1/clients?limit=0")
        .await
        .problem(400, "InvalidQuery");
    api.get("/v1/clients?cursor=00")
        .await
        .problem(400, "Invalid");
    api.post("/v1/clients", CLIENT).await.ok(201);
    let patched = api
        .patch(
            "/v1/clients/night-watch",
            r#"{"url":"https://192.168.0.1/"}"#,
        )
        .await;
    patched.problem(400, "Invalid");
}

#[tokio::test]
async fn links_are_listed_from_both_sides() {
    let api = TestApi::start().await;
    api.post("/v1/clients", CLIENT).await.ok(201);
    for id in ["a", "b", "c"] {
        sensor(&api, id).await;
        let link = format!("/v1/clients/night-watch/sensors/{id}");
        api.request("PUT", &link).send().await.ok(204);
        api.request("PUT", &link).send().await.ok(204);
    }
    let sensors = |page: &Value| -> Vec<String> {
        let links = page["links"].as_array().unwrap().iter();
        links
            .map(|link| link["sensor"].as_str().unwrap().to_owned())
            .collect()
    };
    let first = api
        .get("/v1/clients/night-watch/sensors?limit=2")
        .await
        .ok(200);
    let next = first["nextCursor"].as_str().unwrap();
    let rest = api
        .get(&format!(
            "/v1/clients/night-watch/sensors?limit=2&cursor={next}"
        ))
        .await
        .ok(200);
    assert_eq!([sensors(&first), sensors(&rest)].concat(), ["a", "b", "c"]);
    let clients = api.get("/v1/sensors/b/clients").await.ok(200);
    assert_eq!(clients["links"][0]["client"], "night-watch");

    api.delete("/v1/clients/night-watch")
        .await
        .problem(409, "HasLinks");
    api.delete("/v1/clients/night-watch/sensors/a")
        .await
        .ok(204);
    api.delete("/v1/clients/night-watch/sensors/a")
        .await
        .problem(404, "NotFound");
    api.request("PUT", "/v1/clients/night-watch/sensors/none")
        .send()
        .await
        .problem(404, "NotFound");
    api.request("PUT", "/v1/clients/nobody/sensors/b")
        .send()
        .await
        .problem(404, "NotFound");
    api.request("PUT", "/v1/clients/night-watch/sensors/a%20b")
        .send()
        .await
        .problem(400, "InvalidPath");
    api.delete("/v1/clients/night-watch?cascade=true")
        .await
        .ok(204);
    let clients = api.get("/v1/sensors/b/clients").await.ok(200);
    assert_eq!(clients["links"], json!([]));
}

#[tokio::test]
async fn a_repeated_creation_after_a_crash_creates_one_client() {
    let api = TestApi::start().await;
    let body = r#"{"name":"Night watch","url":"http://127.0.0.1:9999/hook"}"#;
    let make = || {
        api.request("POST", "/v1/clients")
            .header("idempotency-key", "k")
            .json(body)
            .send()
    };
    // The process crashes after it has written the client.
    api.endpoint.script(|call| match call.operation.as_str() {
        "UpdateItem" if call.body.to_string().contains("ONCE#") => {
            Reply::fail(500, "InternalServerError")
        }
        _ => Reply::Pass,
    });
    let lost = make().await.ok(201);
    api.endpoint.script(|_| Reply::Pass);
    make().await.problem(409, "InFlight");
    api.clock.advance(Duration::from_secs(36));
    let created = make().await.ok(201);
    assert_eq!(created, lost, "the same client with the same secret");
    assert_eq!(make().await.ok(201), created);
    let all = api.get("/v1/clients").await.ok(200);
    assert_eq!(all["clients"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_client_is_disabled_with_a_reason() {
    let api = TestApi::start().await;
    api.post(
        "/v1/clients",
        r#"{"id":"night-watch","name":"Night watch","url":"http://127.0.0.1:9/"}"#,
    )
    .await
    .ok(201);
    let disable = |query: &str| {
        let path = format!("/v1/clients/night-watch/disable{query}");
        api.request("POST", &path).send()
    };
    let disabled = disable("?reason=moving%20house").await.ok(200);
    assert_eq!(disabled["enabled"], false);
    assert_eq!(disabled["disabledReason"], "moving house");
    api.request("POST", "/v1/clients/night-watch/enable")
        .send()
        .await
        .ok(200);
    assert_eq!(
        disable("").await.ok(200)["disabledReason"],
        "disabled by an operator"
    );
    let unknown = api.request("POST", "/v1/clients/none/disable").send();
    unknown.await.problem(404, "NotFound");
}
