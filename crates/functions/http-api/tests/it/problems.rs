//! What is told when a request comes to nothing.

use antumbra_testkit::dynamodb::Reply;

use crate::ground::Ground;

const REPORTED: &str = "/v1/shadows/lamp-7/reported";

#[tokio::test]
async fn an_unknown_route_and_a_wrong_method_are_problems() {
    let ground = Ground::start().await;
    for path in [
        "/",
        "/v1",
        "/v2/shadows/x",
        "/v1/shadows",
        "/v1/shadows/",
        "/health/",
        "/v1/shadows/a/b/c/d",
        "*",
    ] {
        ground.get(path).await.problem(404, "NoSuchRoute");
    }
    let nameless = ground.patch("/v1/shadows//reported", "{}").await;
    nameless.problem(400, "InvalidPath");
    let got = ground.ask("PUT", "/v1/shadows/x").send().await;
    got.problem(405, "MethodNotAllowed");
    assert_eq!(got.header("allow"), Some("GET,HEAD,DELETE"));
    let got = ground.get(REPORTED).await;
    got.problem(405, "MethodNotAllowed");
    assert_eq!(got.header("allow"), Some("PATCH"));
    ground
        .stranger("POST", "/health")
        .send()
        .await
        .problem(405, "MethodNotAllowed");
    ground.stranger("GET", "/health").send().await.ok(200);
}

#[tokio::test]
async fn a_path_that_cannot_be_read_is_refused() {
    let ground = Ground::start().await;
    for id in ["%", "%2", "%zz", "a%", "%FF", "%C5", "%ED%A0%80"] {
        let got = ground.get(&format!("/v1/shadows/{id}")).await;
        got.problem(400, "InvalidPath");
    }
    let long = format!("/v1/shadows/{}", "x".repeat(2046));
    let told = ground.get(&long).await.problem(400, "InvalidPath");
    assert_eq!(
        told["detail"],
        "the shadow id has 2046 bytes, the limit is 2045"
    );
}

#[tokio::test]
async fn a_body_must_be_json_and_be_called_so() {
    let ground = Ground::start().await;
    for body in ["", "{", "{\"a\":}", "nul", "{\"a\":1}x", "\u{feff}{}"] {
        ground
            .patch(REPORTED, body)
            .await
            .problem(400, "InvalidJson");
    }
    let got = ground
        .ask("PATCH", REPORTED)
        .header("content-type", "application/json")
        .body(b"{\"\xff\":1}");
    got.send().await.problem(400, "InvalidJson");
    for body in [
        "[]",
        "1",
        "null",
        "\"a\"",
        r#"{"a":1,"a":2}"#,
        r#"{"a":1e999}"#,
    ] {
        ground.patch(REPORTED, body).await.problem(400, "Invalid");
    }
    let deep = format!("{}1{}", "{\"a\":".repeat(40), "}".repeat(40));
    ground.patch(REPORTED, &deep).await.problem(400, "Invalid");
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "json",
        "",
    ] {
        let ask = ground
            .ask("PATCH", REPORTED)
            .header("content-type", kind)
            .body("{}");
        ask.send().await.problem(415, "UnsupportedMediaType");
    }
    ground
        .ask("PATCH", REPORTED)
        .body("{}")
        .send()
        .await
        .problem(415, "UnsupportedMediaType");
    let ask = ground
        .ask("PATCH", REPORTED)
        .header("content-encoding", "gzip")
        .json("{}");
    ask.send().await.problem(415, "UnsupportedMediaType");
    for kind in [
        "application/json; charset=utf-8",
        "Application/JSON",
        "application/merge-patch+json",
    ] {
        let ask = ground
            .ask("PATCH", REPORTED)
            .header("content-type", kind)
            .body("{}");
        ask.send().await.ok(200);
    }
}

#[tokio::test]
async fn too_much_is_refused_with_the_limit() {
    let ground = Ground::start().await;
    let body = format!(r#"{{"a":"{}"}}"#, "x".repeat(1024 * 1024));
    let told = ground.patch(REPORTED, &body).await.problem(413, "TooLarge");
    assert!(told["detail"].as_str().unwrap().contains("1048576"));
    let body = format!(r#"{{"a":"{}"}}"#, "x".repeat(500 * 1024));
    let told = ground.patch(REPORTED, &body).await.problem(413, "TooLarge");
    assert!(
        told["detail"].as_str().unwrap().contains("409600"),
        "{told}"
    );
    ground
        .get("/v1/shadows/lamp-7")
        .await
        .problem(404, "NotFound");
}

#[tokio::test]
async fn what_is_our_fault_says_nothing_of_the_inside() {
    let ground = Ground::start().await;
    ground
        .endpoint
        .script(|_| Reply::fail(500, "InternalServerError"));
    let got = ground.get("/v1/shadows/lamp-7").await;
    let told = got.problem(503, "Unavailable");
    assert_eq!(told["detail"], "try again in a moment");
    assert_eq!(got.header("retry-after"), Some("1"));
    ground
        .endpoint
        .script(|_| Reply::fail(400, "ResourceNotFoundException"));
    let got = ground.patch(REPORTED, r#"{"a":1}"#).await;
    assert_eq!(
        got.problem(503, "Unavailable")["detail"],
        "try again in a moment"
    );
    ground.stranger("GET", "/health").send().await.ok(200);
}
