//! Proves permissions: a role allows exactly the calls that its function was recorded to make.
//!
//! The recording must be complete: every operation of the HTTP API was called, every rule was triggered, and every line
//! that calls AWS was reached.

mod changed;
mod lines;

use std::collections::{BTreeMap, BTreeSet};

use antumbra_service::shadows::Layout;
use antumbra_wire::rules::deployed_rules;

use super::functions::{Function, functions, in_code};
use super::grants::{Permission, faults, granted, needed_by_template};
use super::scenario::{Scenario, TARGETS};
use super::template::{Resource, Stack};

/// Recorded permissions by function.
type Seen = BTreeMap<String, BTreeSet<Permission>>;

/// Everything that the scenarios did.
#[derive(Default)]
struct Recording {
    seen: Seen,
    api_calls: BTreeSet<(String, String)>,
    published: BTreeSet<String>,
    /// Lines that called AWS, by crate.
    lines: BTreeMap<&'static str, BTreeSet<String>>,
}

/// Runs the scenario with all settings of a deployment that change calls.
async fn recorded() -> Recording {
    let mut recorded = Recording::default();
    let run = |layout, newcomers| async move {
        let mut scenario = Scenario::start(layout, newcomers).await;
        scenario.run().await;
        scenario
    };
    let scenarios = tokio::join!(run(Layout::Separate, false), run(Layout::Combined, true));
    for scenario in [scenarios.0, scenarios.1] {
        for call in scenario.recorder.calls() {
            let of = recorded.seen.entry(call.function.clone()).or_default();
            of.extend(call.permissions());
        }
        for (krate, lines) in scenario.recorder.lines_of(&lines::CRATES) {
            recorded.lines.entry(krate).or_default().extend(lines);
        }
        recorded.api_calls.extend(scenario.api_calls());
        recorded
            .published
            .extend(scenario.published().iter().cloned());
        scenario.stop().await;
    }
    recorded
}

/// The functions of a deployment with all kinds of targets, and all its resources.
fn deployment() -> (BTreeMap<String, Function>, Vec<Resource>) {
    let root = Stack::deploy(&TARGETS);
    (functions(&root), root.resources())
}

/// Missing and superfluous permissions of a function's role.
fn wrong(seen: &Seen, function: &Function, resources: &[Resource]) -> Vec<String> {
    let mut needed = needed_by_template(resources, function);
    needed.extend(seen.get(&function.name).cloned().unwrap_or_default());
    let faults = faults(&needed, &granted(resources, function));
    let faults = faults.iter();
    faults
        .map(|fault| format!("{}: {fault}", function.name))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_role_allows_what_its_function_calls_and_nothing_else() {
    let recorded = recorded().await;
    every_api_operation_was_called(&recorded.api_calls);
    every_rule_was_triggered(&recorded.published);
    lines::every_line_was_reached(&recorded.lines);

    let (functions, resources) = deployment();
    let names: BTreeSet<String> = functions.keys().cloned().collect();
    assert_eq!(names, in_code());
    let wrong: Vec<String> = functions
        .values()
        .flat_map(|function| wrong(&recorded.seen, function, &resources))
        .collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    changed::every_changed_statement_is_found(&recorded.seen, &functions, &resources);
}

fn every_api_operation_was_called(api_calls: &BTreeSet<(String, String)>) {
    let description = serde_json::to_value(antumbra_http_api::document()).unwrap();
    let mut described = BTreeSet::new();
    for (path, item) in description["paths"].as_object().unwrap() {
        let pieces = path.split('{').map(|piece| match piece.split_once('}') {
            Some((_, rest)) => format!("}}{rest}"),
            None => piece.to_owned(),
        });
        let path = pieces.collect::<Vec<_>>().join("{");
        for method in ["get", "put", "post", "patch", "delete"] {
            if item.get(method).is_some() {
                described.insert((method.to_uppercase(), path.clone()));
            }
        }
    }
    assert_eq!(*api_calls, described);
}

fn every_rule_was_triggered(published: &BTreeSet<String>) {
    for rule in deployed_rules() {
        let filter = antumbra_local::mqtt::TopicFilter::new(rule.filter).unwrap();
        let triggered = published.iter().any(|topic| filter.matches(topic));
        assert!(triggered, "{} was not triggered", rule.name);
    }
}

/// The only other role lets rules report failures.
#[test]
fn there_are_no_other_roles() {
    let (functions, resources) = deployment();
    let mut others: Vec<&Resource> = resources
        .iter()
        .filter(|of| of.kind == "AWS::IAM::Role")
        .collect();
    for function in functions.values() {
        let arn = function.properties["Role"].as_str().unwrap();
        let count = others.len();
        others.retain(|role| !arn.ends_with(&format!("/{}", role.id)));
        assert_eq!(others.len(), count - 1, "{arn} is of one function alone");
    }
    let [rules] = &others[..] else {
        panic!("{others:?}");
    };
    let statements = &rules.properties["Policies"][0]["PolicyDocument"]["Statement"];
    let undeliverable = antumbra_local::queues::queue_arn("antumbra-undeliverable");
    let allowed = serde_json::json!([{
        "Effect": "Allow",
        "Action": "sqs:SendMessage",
        "Resource": undeliverable,
    }]);
    assert_eq!(*statements, allowed);
    assert_eq!(
        rules.properties["Policies"].as_array().map(Vec::len),
        Some(1)
    );
}
