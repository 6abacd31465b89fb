//! The description that is kept is the one the code gives.

use std::path::Path;

use serde_json::Value;

use crate::ground::Ground;

fn kept() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi.json")
}

#[test]
fn the_kept_description_is_the_codes() {
    let text = antumbra_http_api::document().to_pretty_json().unwrap() + "\n";
    if std::env::var_os("ANTUMBRA_WRITE_OPENAPI").is_some() {
        std::fs::write(kept(), &text).unwrap();
    }
    let kept = std::fs::read_to_string(kept()).unwrap();
    assert!(
        kept == text,
        "openapi.json is not what the code says: run scripts/write-openapi"
    );
}

#[test]
fn every_operation_says_what_it_can_answer() {
    let document = serde_json::to_value(antumbra_http_api::document()).unwrap();
    assert_eq!(document["openapi"], "3.1.0");
    let mut ids = std::collections::BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let name = format!("{method} {path}");
            assert!(operation["summary"].is_string(), "{name}");
            let id = operation["operationId"].as_str().unwrap();
            assert!(ids.insert(id.to_owned()), "{id} stands twice");
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
                (_, "get") => &["400", "401", "500", "503"],
                _ => &["400", "401", "409", "413", "422", "500", "503"],
            };
            for status in wanted {
                assert!(responses.contains_key(*status), "{name} lacks {status}");
            }
        }
    }
}

/// Routes are served under the paths and methods that their handlers are described with.
#[tokio::test]
async fn every_operation_is_served() {
    let ground = Ground::start().await;
    let document = serde_json::to_value(antumbra_http_api::document()).unwrap();
    for (path, item) in document["paths"].as_object().unwrap() {
        let path = path.replace(['{', '}'], "");
        for method in item.as_object().unwrap().keys() {
            let got = ground.ask(&method.to_uppercase(), &path).send().await;
            for code in ["NoSuchRoute", "MethodNotAllowed"] {
                assert!(!got.text.contains(code), "{method} {path}: {}", got.text);
            }
        }
    }
}

/// Every reference leads somewhere.
#[test]
fn no_reference_is_loose() {
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
    let document = serde_json::to_value(antumbra_http_api::document()).unwrap();
    let mut found = Vec::new();
    references(&document, &mut found);
    assert!(!found.is_empty());
    for reference in found {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
}
