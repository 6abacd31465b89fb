//! Secrets of clients: shown to the request that created them, also when it is repeated, and stored in one item.

use std::time::Duration;

use antumbra_testkit::dynamodb::Reply;
use serde_json::Value;

use crate::support::{Response, TestApi};

const CLIENT: &str =
    r#"{"id":"night-watch","name":"Night \"watch\" å","url":"http://127.0.0.1:9999/hook"}"#;
const ROTATE: &str = "/v1/clients/night-watch/rotate-secret?keepPreviousSeconds=60";

async fn make(api: &TestApi, key: &str) -> Response {
    let request = api.request("POST", "/v1/clients");
    request
        .header("idempotency-key", key)
        .json(CLIENT)
        .send()
        .await
}

async fn rotate(api: &TestApi, key: &str) -> Response {
    let request = api.request("POST", ROTATE).header("idempotency-key", key);
    request.send().await
}

fn secret(response: &Response, status: u16) -> String {
    let secret = response.ok(status)["secret"].as_str().unwrap().to_owned();
    assert!(secret.starts_with("whsec_"), "{secret}");
    secret
}

#[track_caller]
fn is_replay(again: &Response, first: &Response) {
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!((again.status, &again.text), (first.status, &first.text));
    for name in ["etag", "location", "content-type", "cache-control"] {
        assert_eq!(again.header(name), first.header(name), "{name}");
    }
}

#[tokio::test]
async fn a_replayed_response_has_the_secret_that_is_not_stored_with_it() {
    let api = TestApi::start().await;
    let created = make(&api, "make").await;
    assert_eq!(created.header("cache-control"), Some("no-store"));
    is_replay(&make(&api, "make").await, &created);
    let first = secret(&created, 201);
    assert_eq!(api.items_with(&first).await, ["CLIENTSECRETS"]);

    let rotated = rotate(&api, "rotate").await;
    is_replay(&rotate(&api, "rotate").await, &rotated);
    let second = secret(&rotated, 200);
    assert_ne!(first, second);
    assert_eq!(api.items_with(&second).await, ["CLIENTSECRETS"]);
    // The previous secret is still valid, in the same item.
    assert_eq!(api.items_with(&first).await, ["CLIENTSECRETS"]);
    let all = api.items_with("whsec_").await;
    assert_eq!(all, ["CLIENTSECRETS"]);
}

#[tokio::test]
async fn a_replaced_secret_is_not_shown_again() {
    let api = TestApi::start().await;
    make(&api, "make").await.ok(201);
    rotate(&api, "one").await.ok(200);
    make(&api, "make").await.problem(409, "SecretReplaced");
    api.request("POST", ROTATE).send().await.ok(200);
    rotate(&api, "one").await.problem(409, "SecretReplaced");
    api.delete("/v1/clients/night-watch").await.ok(204);
    rotate(&api, "one").await.problem(409, "SecretReplaced");
}

/// Fails every write of a stored response, as if the process had crashed before it.
fn fail_before_the_response_is_stored(api: &TestApi) {
    api.endpoint.script(move |call| {
        let keeps = call.operation == "UpdateItem" && call.body.to_string().contains("ONCE#");
        if keeps {
            Reply::fail(500, "InternalServerError")
        } else {
            Reply::Pass
        }
    });
}

#[tokio::test]
async fn a_repeated_rotation_after_a_crash_rotates_once() {
    let api = TestApi::start().await;
    let first = secret(&make(&api, "make").await, 201);
    fail_before_the_response_is_stored(&api);
    let lost = rotate(&api, "k").await.ok(200);
    api.endpoint.script(|_| Reply::Pass);
    rotate(&api, "k").await.problem(409, "InFlight");
    api.clock.advance(Duration::from_secs(36));
    let repeated = rotate(&api, "k").await;
    assert_eq!(repeated.header("idempotency-replayed"), None);
    assert_eq!(
        repeated.ok(200),
        lost,
        "the secret and the end of the previous one"
    );
    is_replay(&rotate(&api, "k").await, &repeated);
    // A second rotation would have removed the first secret.
    assert_eq!(api.items_with(&first).await, ["CLIENTSECRETS"]);
}

#[tokio::test]
async fn a_repeated_rotation_does_not_replace_a_newer_secret() {
    let api = TestApi::start().await;
    make(&api, "make").await.ok(201);
    fail_before_the_response_is_stored(&api);
    rotate(&api, "k").await.ok(200);
    api.endpoint.script(|_| Reply::Pass);
    let newer = secret(&rotate(&api, "newer").await, 200);
    api.clock.advance(Duration::from_secs(36));
    rotate(&api, "k").await.problem(409, "SecretReplaced");
    assert_eq!(secret(&rotate(&api, "newer").await, 200), newer);
}

#[tokio::test]
async fn a_repeated_creation_with_an_id_creates_one_client() {
    let api = TestApi::start().await;
    fail_before_the_response_is_stored(&api);
    let lost = make(&api, "k").await.ok(201);
    api.endpoint.script(|_| Reply::Pass);
    api.clock.advance(Duration::from_secs(36));
    assert_eq!(make(&api, "k").await.ok(201), lost);
    // Another request for the same id is still rejected.
    make(&api, "other").await.problem(409, "AlreadyExists");
}

#[tokio::test]
async fn an_expired_key_rotates_again() {
    let api = TestApi::start().await;
    make(&api, "make").await.ok(201);
    let problem = |response: Response| -> Value { response.ok(200)["secret"].clone() };
    let one = problem(rotate(&api, "monthly").await);
    assert_eq!(problem(rotate(&api, "monthly").await), one);
    api.clock.advance(Duration::from_secs(24 * 3600 + 1));
    assert_ne!(problem(rotate(&api, "monthly").await), one);
}
