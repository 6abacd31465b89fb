//! `antumbra demo` as a process: what it says for machines, and how it ends.

use serde_json::Value;

use crate::process::{antumbra, text};

fn told(arguments: &[&str]) -> (Option<i32>, Value, String) {
    let output = antumbra(arguments);
    let said = serde_json::from_slice(&output.stdout).unwrap();
    (output.status.code(), said, text(&output.stderr))
}

#[test]
fn a_tour_for_machines() {
    let (code, said, complaints) = told(&["demo", "--json"]);
    assert_eq!(
        (code, &said["passed"]),
        (Some(0), &Value::from(true)),
        "{said}"
    );
    assert_eq!(complaints, "");
    let steps = said["steps"].as_array().unwrap();
    assert!(steps.len() > 30, "{said}");
    let whole = |step: &Value| step["chapter"].is_string() && step["seen"].is_string();
    assert!(steps.iter().all(whole), "{said}");
}

#[test]
fn a_tour_that_ends_early_says_where_and_why() {
    let (code, said, complaints) = told(&["demo", "--json", "--break", "shadow-requests"]);
    assert_eq!((code, &said["passed"]), (Some(1), &Value::from(false)));
    let surprise = said["surprise"].as_str().unwrap();
    assert!(
        surprise.starts_with("a message on shadow/fan/update/accepted did not come"),
        "{surprise}"
    );
    assert_eq!(
        complaints,
        format!("error: the tour ended early: {surprise}\n")
    );
}
