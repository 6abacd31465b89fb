//! Error responses.

use antumbra_testkit::dynamodb::Reply;

use crate::support::TestApi;

const REPORTED: &str = "/v1/shadows/lamp-7/reported";

#[tokio::test]
async fn unknown_routes_and_methods_are_problems() {
    let api = TestApi::start().await;
    for path in [
        "/",
        "/v1",
        "/v2/shadows/x",
        "/v1/shadows/",
        "/health/",
        "/v1/shadows/a/b/c/d",
        "*",
    ] {
        api.get(path).await.problem(404, "NoSuchRoute");
    }
    let nameless = api.patch("/v1/shadows//reported", "{}").await;
    nameless.problem(400, "InvalidPath");
    let response = api.request("PUT", "/v1/shadows/x").send().await;
    response.problem(405, "MethodNotAllowed");
    assert_eq!(response.header("allow"), Some("GET,HEAD,PATCH,DELETE"));
    let response = api.get(REPORTED).await;
    response.problem(405, "MethodNotAllowed");
    assert_eq!(response.header("allow"), Some("PATCH,DELETE"));
    api.anonymous("POST", "/health")
        .send()
        .await
        .problem(405, "MethodNotAllowed");
    api.anonymous("GET", "/health").send().await.ok(200);
}

#[tokio::test]
async fn invalid_paths_are_rejected() {
    let api = TestApi::start().await;
    for id in ["%", "%2", "%zz", "a%", "%FF", "%C5", "%ED%A0%80"] {
        let response = api.get(&format!("/v1/shadows/{id}")).await;
        response.problem(400, "InvalidPath");
    }
    let long = format!("/v1/shadows/{}", "x".repeat(1025));
    let problem = api.get(&long).await.problem(400, "InvalidPath");
    assert_eq!(
        problem["detail"],
        "the shadow id has 1025 bytes, the limit is 1024"
    );
}

#[tokio::test]
async fn a_body_must_be_json_with_its_content_type() {
    let api = TestApi::start().await;
    for body in ["", "{", "{\"a\":}", "nul", "{\"a\":1}x", "\u{feff}{}"] {
        api.patch(REPORTED, body).await.problem(400, "InvalidJson");
    }
    let response = api
        .request("PATCH", REPORTED)
        .header("content-type", "application/json")
        .body(b"{\"\xff\":1}");
    response.send().await.problem(400, "InvalidJson");
    for body in [
        "[]",
        "1",
        "null",
        "\"a\"",
        r#"{"a":1,"a":2}"#,
        r#"{"a":1e999}"#,
    ] {
        api.patch(REPORTED, body).await.problem(400, "Invalid");
    }
    let deep = format!("{}1{}", "{\"a\":".repeat(40), "}".repeat(40));
    api.patch(REPORTED, &deep).await.problem(400, "Invalid");
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "json",
        "",
    ] {
        let request = api
            .request("PATCH", REPORTED)
            .header("content-type", kind)
            .body("{}");
        request.send().await.problem(415, "UnsupportedMediaType");
    }
    api.request("PATCH", REPORTED)
        .body("{}")
        .send()
        .await
        .problem(415, "UnsupportedMediaType");
    let request = api
        .request("PATCH", REPORTED)
        .header("content-encoding", "gzip")
        .json("{}");
    request.send().await.problem(415, "UnsupportedMediaType");
    for kind in [
        "application/json; charset=utf-8",
        "Application/JSON",
        "application/merge-patch+json",
    ] {
        let request = api
            .request("PATCH", REPORTED)
            .header("content-type", kind)
            .body("{}");
        request.send().await.ok(200);
    }
}

#[tokio::test]
async fn too_large_requests_are_rejected_with_the_limit() {
    let api = TestApi::start().await;
    let body = format!(r#"{{"a":"{}"}}"#, "x".repeat(1024 * 1024));
    let problem = api.patch(REPORTED, &body).await.problem(413, "TooLarge");
    assert!(problem["detail"].as_str().unwrap().contains("1048576"));
    let body = format!(r#"{{"a":"{}"}}"#, "x".repeat(500 * 1024));
    let problem = api.patch(REPORTED, &body).await.problem(413, "TooLarge");
    assert!(
        problem["detail"].as_str().unwrap().contains("409600"),
        "{problem}"
    );
    api.get("/v1/shadows/lamp-7").await.problem(404, "NotFound");
}

#[tokio::test]
async fn internal_failures_reveal_no_details() {
    let api = TestApi::start().await;
    api.endpoint
        .script(|_| Reply::fail(500, "InternalServerError"));
    let response = api.get("/v1/shadows/lamp-7").await;
    let problem = response.problem(503, "Unavailable");
    assert_eq!(problem["detail"], "try again in a moment");
    assert_eq!(response.header("retry-after"), Some("1"));
    api.endpoint
        .script(|_| Reply::fail(400, "ResourceNotFoundException"));
    let response = api.patch(REPORTED, r#"{"a":1}"#).await;
    assert_eq!(
        response.problem(503, "Unavailable")["detail"],
        "try again in a moment"
    );
    api.anonymous("GET", "/health").send().await.ok(200);
}
