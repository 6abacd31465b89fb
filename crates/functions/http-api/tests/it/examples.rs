//! The examples of `docs/access.md`: every request gets the status that the page says.

use std::path::Path;

use serde_json::json;

use crate::support::TestApi;

/// The grants of an example, and its requests: method, path, status, and a text that the response lacks.
type Example = (String, Vec<(String, String, u16, Option<String>)>);

fn examples() -> Vec<Example> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/access.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, page) = page.split_once("\n## Three examples\n").unwrap();
    let (page, _) = page.split_once("\n## ").unwrap();
    let mut examples: Vec<Example> = Vec::new();
    for line in page.lines() {
        if let Some(grants) = line.strip_prefix("Grants: ") {
            examples.push((grants.replace('`', ""), Vec::new()));
        }
        let Some(row) = line.strip_prefix("| `") else {
            continue;
        };
        let (request, status) = row.split_once("` | ").unwrap();
        let (method, path) = request.split_once(' ').unwrap();
        let status = status.trim_end_matches(" |");
        let (status, lacks) = match status.split_once(", without ") {
            Some((status, lacks)) => (status, Some(lacks.replace('`', ""))),
            None => (status, None),
        };
        let request = (
            method.to_owned(),
            path.to_owned(),
            status.parse().unwrap(),
            lacks,
        );
        examples.last_mut().unwrap().1.push(request);
    }
    assert_eq!(examples.len(), 3);
    examples
}

#[tokio::test]
async fn the_examples_of_the_documentation_are_true() {
    for (grants, requests) in examples() {
        let api = TestApi::start_with(&[&grants]).await;
        for tenant in ["acme", "other"] {
            let shadow = format!("/v1/shadows/{tenant}%23lamp/reported");
            api.patch(&shadow, r#"{"led":1}"#).await.ok(200);
            let sensor = json!({"id": format!("{tenant}:door")});
            api.post("/v1/sensors", &sensor.to_string()).await.ok(201);
            let client =
                json!({"id": format!("{tenant}:hook"), "name": "n", "url": "http://127.0.0.1:1/"});
            api.post("/v1/clients", &client.to_string()).await.ok(201);
        }
        assert!(requests.len() > 5);
        for (method, path, status, lacks) in requests {
            let request = api.request_as(&grants, &method, &path).json("{}");
            let response = request.send().await;
            assert_eq!(
                response.status, status,
                "{grants}: {method} {path}: {}",
                response.text
            );
            if let Some(lacks) = lacks {
                assert!(response.text.contains("acme"), "{}", response.text);
                assert!(
                    !response.text.contains(&lacks),
                    "{method} {path}: {}",
                    response.text
                );
            }
        }
    }
}
