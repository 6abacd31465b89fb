//! The functions of a deployment with SAM's `Globals`, and their event sources.

use std::collections::{BTreeMap, BTreeSet};

use antumbra_lambda_kit::FUNCTIONS;
use serde_json::Value;

use super::template::{Resource, Stack, text};

#[derive(Debug, Clone)]
pub(crate) struct Function {
    /// Name in the code, such as `stream-listener`.
    pub(crate) name: String,
    pub(crate) properties: Value,
    /// Build metadata for SAM.
    pub(crate) build: Value,
    pub(crate) timeout_seconds: u64,
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) sources: Vec<Source>,
}

/// An event source: the type of a SAM event, and its properties.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub(crate) kind: String,
    pub(crate) properties: Value,
}

impl Source {
    /// ARN of the stream or queue.
    pub(crate) fn arn(&self) -> Option<String> {
        ["Stream", "Queue", "EventSourceArn", "Broker"]
            .iter()
            .find_map(|name| self.properties.get(name))
            .map(text)
    }

    /// Queue for failed invocations.
    pub(crate) fn on_failure(&self) -> Option<String> {
        on_failure(&self.properties)
    }
}

/// The queue of a `DestinationConfig`.
pub(crate) fn on_failure(properties: &Value) -> Option<String> {
    properties
        .pointer("/DestinationConfig/OnFailure/Destination")
        .map(text)
}

/// All functions of a deployment, by name.
pub(crate) fn functions(root: &Stack) -> BTreeMap<String, Function> {
    let (globals, resources) = (root.globals(), root.resources());
    let functions = resources
        .iter()
        .filter(|resource| resource.kind == "AWS::Serverless::Function");
    functions
        .map(|resource| function(resource, &globals, &resources))
        .map(|function| (function.name.clone(), function))
        .collect()
}

fn function(resource: &Resource, globals: &Value, resources: &[Resource]) -> Function {
    let mut properties = globals.clone();
    merge(&mut properties, &resource.properties);
    let environment = properties.pointer("/Environment/Variables");
    let environment = environment.and_then(Value::as_object).unwrap();
    let environment = environment
        .iter()
        .map(|(name, value)| (name.clone(), text(value)));
    let events = properties.get("Events").and_then(Value::as_object);
    let own = events.into_iter().flatten().map(|(_, event)| Source {
        kind: text(&event["Type"]),
        properties: event["Properties"].clone(),
    });
    let name = properties.get("FunctionName").map(text);
    let mapped = resources.iter().filter(|other| {
        other.kind == "AWS::Lambda::EventSourceMapping"
            && other.properties.get("FunctionName").map(text) == name
    });
    let mapped = mapped.map(|other| Source {
        kind: "MQ".to_owned(),
        properties: other.properties.clone(),
    });
    Function {
        name: kebab(&resource.id),
        build: resource.attributes["Metadata"].clone(),
        timeout_seconds: properties["Timeout"].as_u64().unwrap(),
        environment: environment.collect(),
        sources: own.chain(mapped).collect(),
        properties,
    }
}

fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (name, value) in from {
                merge(into.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}

/// `StreamListener` to `stream-listener`.
fn kebab(id: &str) -> String {
    let mut name = String::new();
    for letter in id.chars() {
        if letter.is_uppercase() && !name.is_empty() {
            name.push('-');
        }
        name.extend(letter.to_lowercase());
    }
    name
}

/// Names of the functions in the code.
pub(crate) fn in_code() -> BTreeSet<String> {
    FUNCTIONS
        .iter()
        .map(|function| function.name.to_owned())
        .collect()
}
