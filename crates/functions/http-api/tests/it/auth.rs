//! Nobody comes in who may not.

use antumbra_http_api::document;
use serde_json::Value;

use crate::ground::{Ground, TOKEN};

/// Every route of the description, with something in the place of each part.
pub(crate) fn routes() -> Vec<(String, String)> {
    let document = serde_json::to_value(document()).unwrap();
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
async fn no_route_but_health_answers_without_credentials() {
    let ground = Ground::start().await;
    let unknown = [
        ("GET".to_owned(), "/nowhere".to_owned()),
        ("GET".to_owned(), "/health/x".to_owned()),
    ];
    for (method, path) in routes().into_iter().chain(unknown) {
        if path == "/health" {
            ground.stranger(&method, &path).send().await.ok(200);
            continue;
        }
        let got = ground.stranger(&method, &path).json("{}").send().await;
        got.problem(401, "Unauthorized");
        assert_eq!(
            got.header("www-authenticate"),
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
            let ask = ground
                .stranger(&method, &path)
                .header("authorization", &wrong);
            let got = ask.json("{}").send().await;
            got.problem(401, "Unauthorized");
            let challenge = got.header("www-authenticate").unwrap();
            assert!(challenge.contains("invalid_token"), "{challenge}");
        }
    }
    assert!(
        ground.endpoint.take_calls().is_empty(),
        "the store heard of it"
    );
}

#[tokio::test]
async fn a_token_may_be_called_bearer_in_any_letters() {
    let ground = Ground::start().await;
    let ask = ground
        .stranger("GET", "/v1/shadows/x")
        .header("authorization", &format!("bearer {TOKEN}"));
    ask.send().await.problem(404, "NotFound");
}
