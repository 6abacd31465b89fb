//! Authentication.

use antumbra_http_api::document;
use axum::body::Body;
use hyper::Request;
use hyper::header::HeaderValue;
use serde_json::Value;
use tower::ServiceExt;

use crate::support::{TOKEN, TestApi, token_of};

/// Every route of the OpenAPI document, with `x` for each parameter.
pub(crate) fn routes() -> Vec<(String, String)> {
    let document = document();
    let mut routes = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        let mut filled = String::new();
        let mut rest = path.as_str();
        while let Some((before, after)) = rest.split_once('{') {
            filled.push_str(before);
            filled.push('x');
            rest = after.split_once('}').unwrap().1;
        }
        filled.push_str(rest);
        let methods = ["get", "put", "post", "patch", "delete"];
        let methods = methods
            .into_iter()
            .filter(|method| item.get(method) != Some(&Value::Null));
        let methods = methods.filter(|method| item.get(method).is_some());
        routes.extend(methods.map(|method| (method.to_uppercase(), filled.clone())));
    }
    assert!(routes.len() > 8, "{routes:?}");
    routes
}

#[tokio::test]
async fn every_route_except_health_requires_credentials() {
    let api = TestApi::start().await;
    let unknown = [
        ("GET".to_owned(), "/nowhere".to_owned()),
        ("GET".to_owned(), "/health/x".to_owned()),
    ];
    for (method, path) in routes().into_iter().chain(unknown) {
        if path == "/health" {
            api.anonymous(&method, &path).send().await.ok(200);
            continue;
        }
        let response = api.anonymous(&method, &path).json("{}").send().await;
        response.problem(401, "Unauthorized");
        assert_eq!(
            response.header("www-authenticate"),
            Some("Bearer realm=\"antumbra\"")
        );
        let wrong = [
            format!("Bearer {TOKEN}x"),
            format!("Bearer {}", &TOKEN[1..]),
            "Bearer ".to_owned(),
            "Bearer".to_owned(),
            TOKEN.to_owned(),
            format!("Basic {TOKEN}"),
        ];
        for wrong in wrong {
            let request = api
                .anonymous(&method, &path)
                .header("authorization", &wrong);
            let response = request.json("{}").send().await;
            response.problem(401, "Unauthorized");
            let challenge = response.header("www-authenticate").unwrap();
            assert!(challenge.contains("invalid_token"), "{challenge}");
        }
    }
    assert!(
        api.endpoint.take_calls().is_empty(),
        "the request reached the store"
    );
}

#[tokio::test]
async fn the_bearer_scheme_is_case_insensitive() {
    let api = TestApi::start().await;
    let request = api
        .anonymous("GET", "/v1/shadows/x")
        .header("authorization", &format!("bearer {TOKEN}"));
    request.send().await.problem(404, "NotFound");
}

#[tokio::test]
async fn oddly_written_credentials_are_refused() {
    let api = TestApi::start_with(&["shadows:read"]).await;
    let text = |text: &str| text.as_bytes().to_vec();
    for odd in [
        // Not UTF-8, and a token with other characters that look the same.
        [b"Bearer ".as_slice(), &[0xff, 0xfe], TOKEN.as_bytes()].concat(),
        text("Bearer l\u{435}t-me-in"),
        text(&format!("Bearer\t{TOKEN}")),
        text(&format!("Bearer {}", TOKEN.to_uppercase())),
        text(&format!("Bearer {TOKEN}, Bearer {TOKEN}")),
        text(&format!("Bearer {TOKEN} {TOKEN}")),
        text("Bearer let%2Dme%2Din"),
        text("Bearer bGV0LW1lLWlu"),
        // The tokens of two callers are no token.
        text(&format!("Bearer {TOKEN}{}", token_of("shadows:read"))),
        // A token names its grants only by chance.
        text(&format!("Bearer {}", token_of("shadows:admin"))),
        // A JWT without a signature.
        text("Bearer eyJhbGciOiJub25lIn0.eyJzY29wZSI6ImFudHVtYnJhLyoifQ."),
        text(&format!("Bearer {}", "x".repeat(8000))),
    ] {
        let value = HeaderValue::from_bytes(&odd).unwrap();
        let request = Request::get("/v1/shadows/x").header("authorization", value);
        let request = request.body(Body::empty()).unwrap();
        let response = api.router.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), 401, "{}", String::from_utf8_lossy(&odd));
    }
    // Of two headers the first counts: no second one is tried.
    let request = api
        .anonymous("GET", "/v1/shadows/x")
        .header("authorization", "Bearer x")
        .header("authorization", &format!("Bearer {TOKEN}"));
    request.send().await.problem(401, "Unauthorized");
    assert!(api.endpoint.take_calls().is_empty());
}
