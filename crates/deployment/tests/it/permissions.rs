//! Permissions are proved: what a role allows is what its function was seen to call, no less and no more.
//!
//! What is seen is only as good as what was played, so that is looked at first: every operation of the HTTP API
//! was asked for, every rule was triggered, and every line of ours that calls AWS was reached.

mod changed;
mod lines;

use std::collections::{BTreeMap, BTreeSet};

use antumbra_sensor_ingest::AutoRegistration;
use antumbra_service::shadows::Layout;
use antumbra_wire::rules::deployed_rules;

use super::functions::{Function, functions, in_code};
use super::grants::{Permission, faults, granted, needed_by_template};
use super::play::{Play, TARGETS};
use super::template::{Resource, Stack};

/// What each function was seen to call.
type Seen = BTreeMap<String, BTreeSet<Permission>>;

/// What was played.
#[derive(Default)]
struct Played {
    seen: Seen,
    asked: BTreeSet<(String, String)>,
    published: BTreeSet<String>,
    /// Lines that called AWS, by crate.
    lines: BTreeMap<&'static str, BTreeSet<String>>,
}

/// Every way that a deployment can be set to work in.
async fn played() -> Played {
    let newcomer = AutoRegistration::new("unknown/unknown/unknown/unknown", "lock", 3600).unwrap();
    let mut played = Played::default();
    for (layout, newcomer) in [(Layout::Separate, None), (Layout::Combined, Some(newcomer))] {
        let mut play = Play::start(layout, newcomer).await;
        play.run().await;
        for call in play.recorder.calls() {
            let of = played.seen.entry(call.function.clone()).or_default();
            of.extend(call.permissions());
        }
        for krate in lines::CRATES {
            let of = played.lines.entry(krate).or_default();
            of.extend(play.recorder.lines_of(krate));
        }
        played.asked.extend(play.asked());
        played.published.extend(play.published().iter().cloned());
        play.stop().await;
    }
    played
}

/// The functions of a deployment with all kinds of targets, and all its resources.
fn deployment() -> (BTreeMap<String, Function>, Vec<Resource>) {
    let root = Stack::deploy(&TARGETS);
    (functions(&root), root.resources())
}

/// What is wrong with the role of one function.
fn wrong(seen: &Seen, function: &Function, resources: &[Resource]) -> Vec<String> {
    let mut needed = needed_by_template(resources, function);
    needed.extend(seen.get(&function.name).cloned().unwrap_or_default());
    let faults = faults(&needed, &granted(resources, function));
    let said = faults.iter();
    said.map(|fault| format!("{}: {fault}", function.name))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_role_allows_what_its_function_calls_and_nothing_else() {
    let played = played().await;
    everything_was_asked_for(&played.asked);
    every_rule_was_triggered(&played.published);
    lines::every_one_was_reached(&played.lines);

    let (functions, resources) = deployment();
    let names: BTreeSet<String> = functions.keys().cloned().collect();
    assert_eq!(names, in_code());
    let wrong: Vec<String> = functions
        .values()
        .flat_map(|function| wrong(&played.seen, function, &resources))
        .collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    changed::no_other_statement_is_right(&played.seen, &functions, &resources);
}

fn everything_was_asked_for(asked: &BTreeSet<(String, String)>) {
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
    assert_eq!(*asked, described);
}

fn every_rule_was_triggered(published: &BTreeSet<String>) {
    for rule in deployed_rules() {
        let filter = antumbra_local::mqtt::TopicFilter::new(rule.filter).unwrap();
        let triggered = published.iter().any(|topic| filter.matches(topic));
        assert!(triggered, "{} was not triggered", rule.name);
    }
}

/// Beside the functions', there is the role by which rules tell of what failed.
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
