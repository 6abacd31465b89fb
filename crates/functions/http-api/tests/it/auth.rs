//! Authentication.

use antumbra_http_api::document;
use serde_json::Value;

use crate::support::{TOKEN, TestApi};

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
