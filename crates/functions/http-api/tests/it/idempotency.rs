//! `Idempotency-Key`.

use std::sync::Arc;
use std::time::Duration;

use antumbra_testkit::dynamodb::Reply;

use crate::support::{Response, TestApi};

const REPORTED: &str = "/v1/shadows/lamp-7/reported";

async fn report_with_key(api: &TestApi, key: &str, body: &str) -> Response {
    let request = api
        .request("PATCH", REPORTED)
        .header("idempotency-key", key);
    request.json(body).send().await
}

#[tokio::test]
async fn a_repeated_request_gets_the_stored_response() {
    let api = TestApi::start().await;
    let first = report_with_key(&api, "k1", r#"{"a":1}"#).await;
    assert_eq!(first.ok(200)["written"], true);
    api.patch(REPORTED, r#"{"a":2}"#).await.ok(200);
    let again = report_with_key(&api, "k1", r#"{"a":1}"#).await;
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!((again.status, &again.text), (200, &first.text));
    for name in ["etag", "content-type", "cache-control"] {
        assert_eq!(again.header(name), first.header(name), "{name}");
    }
    let shadow = api.get("/v1/shadows/lamp-7").await.ok(200);
    assert_eq!(shadow["reported"]["document"]["a"], 2);
    api.clock.advance(Duration::from_secs(24 * 3600 + 1));
    let later = report_with_key(&api, "k1", r#"{"a":1}"#).await;
    assert_eq!(later.header("idempotency-replayed"), None);
    assert_eq!(later.ok(200)["version"], 3);
}

#[tokio::test]
async fn a_key_belongs_to_one_request() {
    let api = TestApi::start().await;
    report_with_key(&api, "k", r#"{"a":1}"#).await.ok(200);
    report_with_key(&api, "k", r#"{"a":2}"#)
        .await
        .problem(422, "KeyReused");
    let other = |method: &str, path: &str, name: &'static str, value: &'static str| {
        let request = api.request(method, path).header("idempotency-key", "k");
        request.header(name, value).json(r#"{"a":1}"#).send()
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
    // Unknown routes are reported with any key.
    other("PUT", REPORTED, "x", "x")
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
        api.get("/v1/shadows/lamp-7").await.ok(200)["reported"]["version"],
        1
    );
}

#[tokio::test]
async fn client_errors_are_stored_and_server_errors_are_not() {
    let api = TestApi::start().await;
    report_with_key(&api, "bad", "[]")
        .await
        .problem(400, "Invalid");
    let again = report_with_key(&api, "bad", "[]").await;
    again.problem(400, "Invalid");
    assert_eq!(again.header("idempotency-replayed"), Some("true"));

    api.endpoint.script(|call| match call.operation.as_str() {
        "BatchGetItem" | "TransactGetItems" => Reply::fail(500, "InternalServerError"),
        _ => Reply::Pass,
    });
    report_with_key(&api, "ours", r#"{"a":1}"#)
        .await
        .problem(503, "Unavailable");
    api.endpoint.script(|_| Reply::Pass);
    let response = report_with_key(&api, "ours", r#"{"a":1}"#).await;
    assert_eq!(response.header("idempotency-replayed"), None);
    response.ok(200);
}

#[tokio::test]
async fn of_concurrent_requests_with_a_key_one_runs() {
    let api = Arc::new(TestApi::start().await);
    // No request continues before all of them have claimed the key.
    api.endpoint.hold_until(8);
    let requests = (0..8).map(|_| {
        let api = Arc::clone(&api);
        tokio::spawn(async move { report_with_key(&api, "k", r#"{"a":1}"#).await })
    });
    let response = futures_util::future::join_all(requests).await;
    let (ran, problem): (Vec<Response>, Vec<Response>) = response
        .into_iter()
        .map(Result::unwrap)
        .partition(|response| {
            response.status == 200 && response.header("idempotency-replayed").is_none()
        });
    assert_eq!(ran.len(), 1);
    for response in problem {
        if response.status == 200 {
            assert_eq!(response.text, ran[0].text);
        } else {
            response.problem(409, "InFlight");
            assert_eq!(response.header("retry-after"), Some("1"));
        }
    }
    let again = report_with_key(&api, "k", r#"{"a":1}"#).await;
    assert_eq!(again.text, ran[0].text);
}

#[tokio::test]
async fn after_the_lease_the_next_request_with_the_key_runs() {
    let api = TestApi::start().await;
    // The process crashes after it has written the report.
    api.endpoint.script(|call| match call.operation.as_str() {
        "UpdateItem" | "DeleteItem" if call.body.to_string().contains("ONCE#") => {
            Reply::fail(500, "InternalServerError")
        }
        _ => Reply::Pass,
    });
    report_with_key(&api, "k", r#"{"a":1}"#).await.ok(200);
    api.endpoint.script(|_| Reply::Pass);
    report_with_key(&api, "k", r#"{"a":1}"#)
        .await
        .problem(409, "InFlight");
    report_with_key(&api, "k", r#"{"a":2}"#)
        .await
        .problem(422, "KeyReused");
    api.clock.advance(Duration::from_secs(36));
    report_with_key(&api, "k", r#"{"a":2}"#)
        .await
        .problem(422, "KeyReused");
    let next = report_with_key(&api, "k", r#"{"a":1}"#).await;
    assert_eq!(next.ok(200)["written"], false, "it was there already");
    let again = report_with_key(&api, "k", r#"{"a":1}"#).await;
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(again.text, next.text);
}

#[tokio::test]
async fn a_registration_repeated_after_a_crash_gets_its_first_response() {
    let api = TestApi::start().await;
    let register = |key: &'static str| {
        let request = api.request("POST", "/v1/sensors");
        let request = request.header("idempotency-key", key);
        request.json(r#"{"id":"door-7"}"#).send()
    };
    api.endpoint.script(|call| {
        match call.operation == "UpdateItem" && call.body.to_string().contains("ONCE#") {
            true => Reply::fail(500, "InternalServerError"),
            false => Reply::Pass,
        }
    });
    let lost = register("k").await.ok(201);
    api.endpoint.script(|_| Reply::Pass);
    api.clock.advance(Duration::from_secs(36));
    assert_eq!(register("k").await.ok(201), lost);
    // Another request for the same id is still rejected.
    assert_eq!(register("other").await.status, 409);
    // The key is forgotten after a day.
    api.clock.advance(Duration::from_secs(24 * 3600 + 1));
    assert_eq!(register("k").await.status, 409);
}

#[tokio::test]
async fn a_response_larger_than_an_item_is_replayed_completely() {
    let api = TestApi::start().await;
    let value = "å".repeat(150 * 1024);
    let body = format!(r#"{{"a":"{value}","b":1}}"#);
    let first = report_with_key(&api, "k", &body).await;
    first.ok(200);
    assert!(first.text.len() > 300 * 1024);
    let body2 = format!(r#"{{"a":"{value}","b":2}}"#);
    let second = report_with_key(&api, "k2", &body2).await;
    assert!(
        second.text.len() > 600 * 1024,
        "old and new: {}",
        second.text.len()
    );
    for (key, body, response) in [("k", &body, first), ("k2", &body2, second)] {
        let again = report_with_key(&api, key, body).await;
        assert_eq!(again.header("idempotency-replayed"), Some("true"));
        assert!(again.text == response.text);
    }
}

#[tokio::test]
async fn invalid_keys_are_rejected_and_reads_ignore_keys() {
    let api = TestApi::start().await;
    for key in ["", "a b", "å", &"k".repeat(256)] {
        report_with_key(&api, key, "{}")
            .await
            .problem(400, "InvalidHeader");
    }
    let twice = api
        .request("PATCH", REPORTED)
        .header("idempotency-key", "a")
        .header("idempotency-key", "b");
    twice.json("{}").send().await.problem(400, "InvalidHeader");
    report_with_key(&api, &"k".repeat(255), r#"{"a":1}"#)
        .await
        .ok(200);
    let trace = api
        .request("TRACE", REPORTED)
        .header("idempotency-key", &"k".repeat(255));
    trace.send().await.problem(405, "MethodNotAllowed");
    let read = api
        .request("GET", "/v1/shadows/lamp-7")
        .header("idempotency-key", "a b");
    read.send().await.ok(200);
}
