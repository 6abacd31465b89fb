//! A client's secret is told to whoever made it, also when it asks again, and lies in one item alone.

use std::time::Duration;

use antumbra_testkit::dynamodb::Reply;
use serde_json::Value;

use crate::ground::{Got, Ground};

const CLIENT: &str =
    r#"{"id":"night-watch","name":"Night \"watch\" å","url":"http://127.0.0.1:9999/hook"}"#;
const ROTATE: &str = "/v1/clients/night-watch/rotate-secret?keepPreviousSeconds=60";

async fn make(ground: &Ground, key: &str) -> Got {
    let ask = ground.ask("POST", "/v1/clients");
    ask.header("idempotency-key", key).json(CLIENT).send().await
}

async fn rotate(ground: &Ground, key: &str) -> Got {
    let ask = ground.ask("POST", ROTATE).header("idempotency-key", key);
    ask.send().await
}

fn secret(got: &Got, status: u16) -> String {
    let secret = got.ok(status)["secret"].as_str().unwrap().to_owned();
    assert!(secret.starts_with("whsec_"), "{secret}");
    secret
}

#[track_caller]
fn is_replay(again: &Got, first: &Got) {
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!((again.status, &again.text), (first.status, &first.text));
    for name in ["etag", "location", "content-type", "cache-control"] {
        assert_eq!(again.header(name), first.header(name), "{name}");
    }
}

#[tokio::test]
async fn an_answer_with_a_secret_is_kept_without_it_and_comes_back_with_it() {
    let ground = Ground::start().await;
    let made = make(&ground, "make").await;
    assert_eq!(made.header("cache-control"), Some("no-store"));
    is_replay(&make(&ground, "make").await, &made);
    let first = secret(&made, 201);
    assert_eq!(ground.items_with(&first).await, ["CLIENTSECRETS"]);

    let rotated = rotate(&ground, "rotate").await;
    is_replay(&rotate(&ground, "rotate").await, &rotated);
    let second = secret(&rotated, 200);
    assert_ne!(first, second);
    assert_eq!(ground.items_with(&second).await, ["CLIENTSECRETS"]);
    // The one before is still in force, in the same item.
    assert_eq!(ground.items_with(&first).await, ["CLIENTSECRETS"]);
    let all = ground.items_with("whsec_").await;
    assert_eq!(all, ["CLIENTSECRETS"]);
}

#[tokio::test]
async fn a_secret_that_was_replaced_is_not_told_again() {
    let ground = Ground::start().await;
    make(&ground, "make").await.ok(201);
    rotate(&ground, "one").await.ok(200);
    make(&ground, "make").await.problem(409, "SecretReplaced");
    ground.ask("POST", ROTATE).send().await.ok(200);
    rotate(&ground, "one").await.problem(409, "SecretReplaced");
    ground.delete("/v1/clients/night-watch").await.ok(204);
    rotate(&ground, "one").await.problem(409, "SecretReplaced");
}

/// Nothing is heard of the store once an answer is to be kept: as if the process had died there.
fn die_before_the_answer_is_kept(ground: &Ground) {
    ground.endpoint.script(move |call| {
        let keeps = call.operation == "UpdateItem" && call.body.to_string().contains("ONCE#");
        if keeps {
            Reply::fail(500, "InternalServerError")
        } else {
            Reply::Pass
        }
    });
}

#[tokio::test]
async fn a_rotation_that_nobody_heard_of_is_not_made_twice() {
    let ground = Ground::start().await;
    let first = secret(&make(&ground, "make").await, 201);
    die_before_the_answer_is_kept(&ground);
    let lost = rotate(&ground, "k").await.ok(200);
    ground.endpoint.script(|_| Reply::Pass);
    rotate(&ground, "k").await.problem(409, "InFlight");
    ground.clock.advance(Duration::from_secs(36));
    let heard = rotate(&ground, "k").await;
    assert_eq!(heard.header("idempotency-replayed"), None);
    assert_eq!(heard.ok(200), lost, "secret and the end of the one before");
    is_replay(&rotate(&ground, "k").await, &heard);
    // Rotated twice, the first secret would have been pushed out.
    assert_eq!(ground.items_with(&first).await, ["CLIENTSECRETS"]);
}

#[tokio::test]
async fn a_client_with_an_id_that_nobody_heard_of_is_not_made_twice() {
    let ground = Ground::start().await;
    die_before_the_answer_is_kept(&ground);
    let lost = make(&ground, "k").await.ok(201);
    ground.endpoint.script(|_| Reply::Pass);
    ground.clock.advance(Duration::from_secs(36));
    assert_eq!(make(&ground, "k").await.ok(201), lost);
    // Another request for the same id is still told so.
    make(&ground, "other").await.problem(409, "AlreadyExists");
}

#[tokio::test]
async fn a_key_that_was_forgotten_rotates_again() {
    let ground = Ground::start().await;
    make(&ground, "make").await.ok(201);
    let told = |got: Got| -> Value { got.ok(200)["secret"].clone() };
    let one = told(rotate(&ground, "monthly").await);
    assert_eq!(told(rotate(&ground, "monthly").await), one);
    ground.clock.advance(Duration::from_secs(24 * 3600 + 1));
    assert_ne!(told(rotate(&ground, "monthly").await), one);
}
