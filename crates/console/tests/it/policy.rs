//! The IAM policy of the read-only console.

use std::collections::BTreeSet;

use crate::support::{TestConsole, TestOptions};

const POLICY: &str = include_str!("../../../../infra/console-policy.json");

#[tokio::test]
async fn the_policy_allows_what_the_pages_call() {
    let policy: serde_json::Value = serde_json::from_str(POLICY).unwrap();
    let statements = policy["Statement"].as_array().unwrap();
    let actions = statements
        .iter()
        .flat_map(|one| one["Action"].as_array().unwrap());
    let allowed: BTreeSet<&str> = actions.map(|action| action.as_str().unwrap()).collect();
    let options = TestOptions {
        write: false,
        ..TestOptions::default()
    };
    let console = TestConsole::start_with(options).await;
    let documents = [r#"{"a":1}"#.to_owned(), r#"{"a":2}"#.to_owned()];
    console
        .recorded_reports("lamp", &documents, std::time::Duration::from_secs(60))
        .await;
    console.endpoint.take_calls();
    for path in [
        "/",
        "/?open=1",
        "/device?id=lamp",
        "/device?id=lamp&at=-1m&from=-2m",
        "/live",
        "/registrations",
        "/sensors",
        "/deliveries",
        "/inbox",
    ] {
        console.get(path).await;
    }
    let calls = console.endpoint.take_calls();
    assert!(!calls.is_empty());
    for call in calls {
        let action = match call.operation.as_str() {
            "TransactGetItems" => "dynamodb:GetItem".to_owned(),
            operation => format!("dynamodb:{operation}"),
        };
        assert!(allowed.contains(action.as_str()), "{action}");
    }
}
