//! Tests the comparison itself: it must find every changed statement.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{Seen, wrong};
use crate::functions::Function;
use crate::template::Resource;

/// JSON pointers of the statements in a role or a policy.
fn statements(resource: &Resource) -> Vec<String> {
    let count = |pointer: &str| {
        let list = resource.properties.pointer(pointer);
        list.and_then(Value::as_array).map_or(0, Vec::len)
    };
    let documents: Vec<String> = match &resource.kind[..] {
        "AWS::IAM::Role" => (0..count("/Policies"))
            .map(|index| format!("/Policies/{index}/PolicyDocument"))
            .collect(),
        "AWS::IAM::RolePolicy" => vec!["/PolicyDocument".to_owned()],
        _ => Vec::new(),
    };
    documents
        .into_iter()
        .flat_map(|document| {
            let all = format!("{document}/Statement");
            (0..count(&all)).map(move |index| format!("{all}/{index}"))
        })
        .collect()
}

/// All statements with one action or resource removed, added or widened.
fn changes(statement: &Value, actions: &BTreeSet<String>) -> Vec<Value> {
    let mut changes = Vec::new();
    for name in ["Action", "Resource"] {
        let list = statement[name].as_array().unwrap();
        for index in 0..list.len() {
            let mut less = statement.clone();
            less[name].as_array_mut().unwrap().remove(index);
            changes.push(less);
            let text = list[index].as_str().unwrap();
            let wider = match name {
                "Action" => format!("{}:*", text.split(':').next().unwrap()),
                _ => "*".to_owned(),
            };
            if text != wider {
                let mut more = statement.clone();
                more[name][index] = json!(wider);
                changes.push(more);
            }
        }
    }
    let own = statement["Action"].as_array().unwrap();
    for action in actions
        .iter()
        .filter(|action| !own.contains(&json!(action)))
    {
        let mut more = statement.clone();
        more["Action"].as_array_mut().unwrap().push(json!(action));
        changes.push(more);
    }
    changes
}

/// The resource is the role, a policy or the log group of a function.
fn is_of(function: &Function, of: &Resource) -> bool {
    let role = function.properties["Role"].as_str().unwrap();
    let named = of.properties.get("RoleName").and_then(Value::as_str);
    let named = format!("/{}", named.unwrap_or(&of.id));
    match &of.kind[..] {
        "AWS::IAM::Role" | "AWS::IAM::RolePolicy" => role.ends_with(&named),
        kind => kind == "AWS::Logs::LogGroup",
    }
}

pub(super) fn every_changed_statement_is_found(
    seen: &Seen,
    functions: &BTreeMap<String, Function>,
    resources: &[Resource],
) {
    let all = seen.values().flatten();
    let mut actions: BTreeSet<String> = all.map(|of| of.action.clone()).collect();
    actions.extend(["dynamodb:Scan", "sqs:PurgeQueue", "iot:Connect"].map(str::to_owned));
    let mut tried = 0;
    for function in functions.values() {
        let own = resources.iter().filter(|of| is_of(function, of)).cloned();
        let mut own: Vec<Resource> = own.collect();
        for index in 0..own.len() {
            for place in statements(&own[index]) {
                let statement = own[index].properties.pointer(&place).unwrap().clone();
                for change in changes(&statement, &actions) {
                    *own[index].properties.pointer_mut(&place).unwrap() = change.clone();
                    let found = wrong(seen, function, &own);
                    let name = &function.name;
                    assert!(!found.is_empty(), "{name}: {change} was not found wrong");
                    tried += 1;
                }
                *own[index].properties.pointer_mut(&place).unwrap() = statement;
            }
        }
    }
    assert!(tried > 1000, "only {tried} changes were tried");
}
