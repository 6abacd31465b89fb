//! `Idempotency-Key`.

use std::sync::Arc;
use std::time::Duration;

use antumbra_testkit::dynamodb::Reply;

use crate::ground::{Got, Ground};

const REPORTED: &str = "/v1/shadows/lamp-7/reported";

async fn keyed(ground: &Ground, key: &str, body: &str) -> Got {
    let ask = ground.ask("PATCH", REPORTED).header("idempotency-key", key);
    ask.json(body).send().await
}

#[tokio::test]
async fn a_request_sent_again_is_answered_again_and_does_nothing() {
    let ground = Ground::start().await;
    let first = keyed(&ground, "k1", r#"{"a":1}"#).await;
    assert_eq!(first.ok(200)["written"], true);
    ground.patch(REPORTED, r#"{"a":2}"#).await.ok(200);
    let again = keyed(&ground, "k1", r#"{"a":1}"#).await;
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!((again.status, &again.text), (200, &first.text));
    for name in ["etag", "content-type", "cache-control"] {
        assert_eq!(again.header(name), first.header(name), "{name}");
    }
    let shadow = ground.get("/v1/shadows/lamp-7").await.ok(200);
    assert_eq!(shadow["reported"]["document"]["a"], 2);
    ground.clock.advance(Duration::from_secs(24 * 3600 + 1));
    let later = keyed(&ground, "k1", r#"{"a":1}"#).await;
    assert_eq!(later.header("idempotency-replayed"), None);
    assert_eq!(later.ok(200)["version"], 3);
}

#[tokio::test]
async fn a_key_belongs_to_one_request() {
    let ground = Ground::start().await;
    keyed(&ground, "k", r#"{"a":1}"#).await.ok(200);
    keyed(&ground, "k", r#"{"a":2}"#)
        .await
        .problem(422, "KeyReused");
    let other = |method: &str, path: &str, name: &'static str, value: &'static str| {
        let ask = ground.ask(method, path).header("idempotency-key", "k");
        ask.header(name, value).json(r#"{"a":1}"#).send()
    };
    other("PATCH", "/v1/shadows/lamp-8/reported", "x", "x")
        .await
        .problem(422, "KeyReused");
    other("PATCH", &format!("{REPORTED}?mode=Patch"), "x", "x")
        .await
        .problem(422, "KeyReused");
    other("DELETE", "/v1/shadows/lamp-7", "x", "x")
        .await
        .problem(422, "KeyReused");
    // What nobody serves is told so, whatever the key.
    other("DELETE", REPORTED, "x", "x")
        .await
        .problem(405, "MethodNotAllowed");
    other("POST", "/v1/nowhere", "x", "x")
        .await
        .problem(404, "NoSuchRoute");
    other("PATCH", REPORTED, "if-match", "\"1\"")
        .await
        .problem(422, "KeyReused");
    other("PATCH", REPORTED, "x-other", "header").await.ok(200);
    assert_eq!(
        ground.get("/v1/shadows/lamp-7").await.ok(200)["reported"]["version"],
        1
    );
}

#[tokio::test]
async fn a_refusal_is_an_answer_and_a_fault_of_ours_is_not() {
    let ground = Ground::start().await;
    keyed(&ground, "bad", "[]").await.problem(400, "Invalid");
    let again = keyed(&ground, "bad", "[]").await;
    again.problem(400, "Invalid");
    assert_eq!(again.header("idempotency-replayed"), Some("true"));

    ground
        .endpoint
        .script(|call| match call.operation.as_str() {
            "BatchGetItem" | "TransactGetItems" => Reply::fail(500, "InternalServerError"),
            _ => Reply::Pass,
        });
    keyed(&ground, "ours", r#"{"a":1}"#)
        .await
        .problem(503, "Unavailable");
    ground.endpoint.script(|_| Reply::Pass);
    let got = keyed(&ground, "ours", r#"{"a":1}"#).await;
    assert_eq!(got.header("idempotency-replayed"), None);
    got.ok(200);
}

#[tokio::test]
async fn of_many_at_once_one_runs_and_the_others_are_told() {
    let ground = Arc::new(Ground::start().await);
    // Nothing goes on before all of them have asked whether to run.
    ground.endpoint.hold_until(8);
    let asked = (0..8).map(|_| {
        let ground = Arc::clone(&ground);
        tokio::spawn(async move { keyed(&ground, "k", r#"{"a":1}"#).await })
    });
    let got = futures_util::future::join_all(asked).await;
    let (ran, told): (Vec<Got>, Vec<Got>) = got
        .into_iter()
        .map(Result::unwrap)
        .partition(|got| got.status == 200 && got.header("idempotency-replayed").is_none());
    assert_eq!(ran.len(), 1);
    for got in told {
        if got.status == 200 {
            assert_eq!(got.text, ran[0].text);
        } else {
            got.problem(409, "InFlight");
            assert_eq!(got.header("retry-after"), Some("1"));
        }
    }
    let again = keyed(&ground, "k", r#"{"a":1}"#).await;
    assert_eq!(again.text, ran[0].text);
}

#[tokio::test]
async fn whoever_died_half_way_is_followed_by_the_next_with_the_key() {
    let ground = Ground::start().await;
    // The report is written, and then nothing more is heard of the store: as if the process had died.
    ground
        .endpoint
        .script(|call| match call.operation.as_str() {
            "UpdateItem" | "DeleteItem" if call.body.to_string().contains("ONCE#") => {
                Reply::fail(500, "InternalServerError")
            }
            _ => Reply::Pass,
        });
    keyed(&ground, "k", r#"{"a":1}"#).await.ok(200);
    ground.endpoint.script(|_| Reply::Pass);
    keyed(&ground, "k", r#"{"a":1}"#)
        .await
        .problem(409, "InFlight");
    keyed(&ground, "k", r#"{"a":2}"#)
        .await
        .problem(422, "KeyReused");
    ground.clock.advance(Duration::from_secs(36));
    keyed(&ground, "k", r#"{"a":2}"#)
        .await
        .problem(422, "KeyReused");
    let next = keyed(&ground, "k", r#"{"a":1}"#).await;
    assert_eq!(next.ok(200)["written"], false, "it was there already");
    let again = keyed(&ground, "k", r#"{"a":1}"#).await;
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(again.text, next.text);
}

#[tokio::test]
async fn an_answer_larger_than_an_item_comes_back_whole() {
    let ground = Ground::start().await;
    let value = "å".repeat(150 * 1024);
    let body = format!(r#"{{"a":"{value}","b":1}}"#);
    let first = keyed(&ground, "k", &body).await;
    first.ok(200);
    assert!(first.text.len() > 300 * 1024);
    let body2 = format!(r#"{{"a":"{value}","b":2}}"#);
    let second = keyed(&ground, "k2", &body2).await;
    assert!(
        second.text.len() > 600 * 1024,
        "old and new: {}",
        second.text.len()
    );
    for (key, body, got) in [("k", &body, first), ("k2", &body2, second)] {
        let again = keyed(&ground, key, body).await;
        assert_eq!(again.header("idempotency-replayed"), Some("true"));
        assert!(again.text == got.text);
    }
}

#[tokio::test]
async fn a_key_that_is_none_is_refused_and_reads_need_none() {
    let ground = Ground::start().await;
    for key in ["", "a b", "å", &"k".repeat(256)] {
        keyed(&ground, key, "{}")
            .await
            .problem(400, "InvalidHeader");
    }
    let twice = ground
        .ask("PATCH", REPORTED)
        .header("idempotency-key", "a")
        .header("idempotency-key", "b");
    twice.json("{}").send().await.problem(400, "InvalidHeader");
    keyed(&ground, &"k".repeat(255), r#"{"a":1}"#).await.ok(200);
    let trace = ground
        .ask("TRACE", REPORTED)
        .header("idempotency-key", &"k".repeat(255));
    trace.send().await.problem(405, "MethodNotAllowed");
    let read = ground
        .ask("GET", "/v1/shadows/lamp-7")
        .header("idempotency-key", "a b");
    read.send().await.ok(200);
}
