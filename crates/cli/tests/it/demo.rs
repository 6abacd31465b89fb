//! `antumbra demo --json` as a process.

use serde_json::Value;

use crate::process::{antumbra, text};

fn demo(arguments: &[&str]) -> (Option<i32>, Value, String) {
    let output = antumbra(arguments);
    let report = serde_json::from_slice(&output.stdout).unwrap();
    (output.status.code(), report, text(&output.stderr))
}

#[test]
fn the_demo_passes_and_lists_its_checks() {
    let (code, report, errors) = demo(&["demo", "--json"]);
    assert_eq!(
        (code, &report["passed"]),
        (Some(0), &Value::from(true)),
        "{report}"
    );
    assert_eq!(errors, "");
    let steps = report["steps"].as_array().unwrap();
    assert!(steps.len() > 30, "{report}");
    let is_complete = |step: &Value| step["chapter"].is_string() && step["check"].is_string();
    assert!(steps.iter().all(is_complete), "{report}");
}

#[test]
fn a_failed_demo_names_the_failed_check() {
    let (code, report, errors) = demo(&["demo", "--json", "--break", "shadow-requests"]);
    assert_eq!((code, &report["passed"]), (Some(1), &Value::from(false)));
    let failure = report["failure"].as_str().unwrap();
    assert!(
        failure.starts_with("a message on shadow/fan/update/accepted did not arrive"),
        "{failure}"
    );
    let error: Value = serde_json::from_str(&errors).unwrap();
    assert_eq!(error["error"], format!("the demo failed: {failure}"));
}
