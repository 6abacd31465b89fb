//! The OpenAPI document.

use std::path::Path;

use serde_json::Value;

use crate::support::TestApi;

fn path() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi.json")
}

#[test]
fn the_committed_document_is_up_to_date() {
    let generated = antumbra_http_api::document();
    if std::env::var_os("ANTUMBRA_WRITE_OPENAPI").is_some() {
        let text = serde_json::to_string_pretty(&generated).unwrap() + "\n";
        std::fs::write(path(), &text).unwrap();
    }
    let committed = std::fs::read(path()).unwrap();
    let committed: Value = serde_json::from_slice(&committed).unwrap();
    assert!(
        committed == generated,
        "openapi.json differs from the code: run scripts/write-openapi"
    );
}

#[test]
fn every_operation_describes_its_responses() {
    let document = antumbra_http_api::document();
    assert_eq!(document["openapi"], "3.1.0");
    let mut ids = std::collections::BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let name = format!("{method} {path}");
            assert!(operation["summary"].is_string(), "{name}");
            let id = operation["operationId"].as_str().unwrap();
            assert!(ids.insert(id.to_owned()), "duplicate operation id {id}");
            let responses = operation["responses"].as_object().unwrap();
            assert!(
                responses.keys().any(|status| status.starts_with('2')),
                "{name}"
            );
            for (status, response) in responses {
                let text = response["description"].as_str().unwrap();
                assert!(!text.is_empty(), "{name} {status}");
                if status.as_str() >= "400" && status != "414" {
                    let content = &response["content"]["application/problem+json"]["schema"];
                    assert_eq!(
                        content["$ref"], "#/components/schemas/Problem",
                        "{name} {status}"
                    );
                }
            }
            let wanted: &[&str] = match (path.as_str(), method.as_str()) {
                ("/health", _) => &["500"],
                (_, "get") => &["400", "401", "403", "500", "503"],
                _ => &["400", "401", "403", "409", "413", "422", "500", "503"],
            };
            for status in wanted {
                assert!(responses.contains_key(*status), "{name} lacks {status}");
            }
        }
    }
}

#[tokio::test]
async fn every_operation_is_served() {
    let api = TestApi::start().await;
    let document = antumbra_http_api::document();
    for (path, item) in document["paths"].as_object().unwrap() {
        let path = path.replace(['{', '}'], "");
        for method in item.as_object().unwrap().keys() {
            let response = api.request(&method.to_uppercase(), &path).send().await;
            let body: Value = serde_json::from_str(&response.text).unwrap_or_default();
            for code in ["NoSuchRoute", "MethodNotAllowed"] {
                assert_ne!(body["code"], code, "{method} {path}");
            }
        }
    }
}

#[tokio::test]
async fn the_document_is_served() {
    let api = TestApi::start().await;
    let served = api.get("/v1/openapi.json").await.ok(200);
    assert_eq!(served, antumbra_http_api::document());
    let anonymous = api.anonymous("GET", "/v1/openapi.json").send().await;
    anonymous.problem(401, "Unauthorized");
}

#[test]
fn every_reference_resolves() {
    fn references(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(object) => {
                if let Some(Value::String(reference)) = object.get("$ref") {
                    found.push(reference.clone());
                }
                object.values().for_each(|value| references(value, found));
            }
            Value::Array(array) => array.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }
    let document = antumbra_http_api::document();
    let mut found = Vec::new();
    references(&document, &mut found);
    assert!(!found.is_empty());
    for reference in found {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
}

#[test]
fn every_annotation_belongs_to_a_property() {
    let annotations = include_str!("../../src/openapi/annotations.json");
    let annotations: Value = serde_json::from_str(annotations).unwrap();
    let document = antumbra_http_api::document();
    for (schema, annotation) in annotations.as_object().unwrap() {
        for (name, added) in annotation["properties"].as_object().unwrap() {
            let property = &document["components"]["schemas"][schema]["properties"][name];
            assert!(property.get("type").is_some(), "{schema}.{name}");
            for (key, value) in added.as_object().unwrap() {
                assert_eq!(&property[key], value, "{schema}.{name}.{key}");
            }
        }
    }
}

#[test]
fn reads_need_the_verb_read_and_writes_more() {
    use antumbra_http_api::{Access, routes};
    use antumbra_service::access::Verb;
    for route in routes::all() {
        let Access::Requires(requirements) = route.access else {
            assert_eq!(route.method, "get", "{}", route.path);
            continue;
        };
        let reads = requirements[0].verb == Verb::Read;
        let name = format!("{} {}", route.method, route.path);
        assert_eq!(reads, route.method == "get", "{name}");
    }
}
