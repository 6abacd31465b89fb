//! Event sources have the same settings on AWS as in the local stack, and timeouts fit together.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use antumbra_lambda_kit::functions::{self, FUNCTIONS};
use antumbra_local::stack::{EventSource, EventSourceKind, Options, Stack as Local};
use antumbra_wire::rules::deployed_rules;
use serde_json::{Value, json};

use crate::functions::{Function, Source, functions};
use crate::support::soon;
use crate::template::{Resource, Stack, text};

/// AWS recommends a visibility timeout of six times the function's timeout.
const TIMES_HIDDEN: u64 = 6;
/// Maximum integration timeout of API Gateway.
const GATEWAY_SECONDS: u64 = 30;

/// Settings of an event source of the local stack, in the template's notation.
fn settings(source: &EventSource) -> Option<(&'static str, Value)> {
    let responses = |report: bool| match report {
        true => json!(["ReportBatchItemFailures"]),
        false => Value::Null,
    };
    match &source.kind {
        EventSourceKind::Stream(stream) => {
            let table = stream.stream_arn.split('/').nth(1).unwrap();
            let queue = stream.on_failure.as_ref().unwrap().rsplit('/').next();
            let settings = json!({
                "from": format!("table/{table}"),
                "StartingPosition": match stream.start {
                    antumbra_local::stream::Start::TrimHorizon => "TRIM_HORIZON",
                    antumbra_local::stream::Start::Latest => "LATEST",
                },
                "BatchSize": stream.batch_size,
                "ParallelizationFactor": stream.parallelization,
                "FunctionResponseTypes": responses(stream.retry.report_failures),
                "BisectBatchOnFunctionError": stream.retry.bisect,
                "MaximumRetryAttempts": stream.retry.retries,
                "MaximumRecordAgeInSeconds": stream.retry.max_age.map(|age| age.as_secs()),
                "on failure": queue,
                "MaximumBatchingWindowInSeconds": null,
            });
            Some(("DynamoDB", settings))
        }
        EventSourceKind::Queue(queue) => {
            let settings = json!({
                "from": queue.queue_arn.rsplit(':').next(),
                "BatchSize": queue.batch_size,
                "FunctionResponseTypes": responses(queue.report_failures),
                "MaximumBatchingWindowInSeconds": null,
            });
            Some(("SQS", settings))
        }
        EventSourceKind::Schedule { period } => {
            let minutes = period.as_secs() / 60;
            let unit = if minutes == 1 { "minute" } else { "minutes" };
            let settings = json!({"Schedule": format!("rate({minutes} {unit})")});
            Some(("Schedule", settings))
        }
        // Compared in `iot`.
        EventSourceKind::Rule(_) => None,
    }
}

/// The same for an event source of the template.
fn deployed(source: &Source) -> Value {
    let of = &source.properties;
    let pick = |names: &[&str]| -> Value {
        let members = names
            .iter()
            .map(|name| ((*name).to_owned(), of[*name].clone()));
        Value::Object(members.collect())
    };
    match &source.kind[..] {
        "DynamoDB" => {
            let mut settings = pick(&[
                "StartingPosition",
                "BatchSize",
                "ParallelizationFactor",
                "FunctionResponseTypes",
                "BisectBatchOnFunctionError",
                "MaximumRetryAttempts",
                "MaximumRecordAgeInSeconds",
                "MaximumBatchingWindowInSeconds",
            ]);
            let arn = source.arn().unwrap();
            let mut parts = arn.split([':', '/']).skip(5);
            let (table, name) = (parts.next().unwrap(), parts.next().unwrap());
            settings["from"] = json!(format!("{table}/{name}"));
            let queue = source.on_failure().unwrap();
            settings["on failure"] = json!(queue.rsplit(':').next());
            settings
        }
        "SQS" => {
            let names = [
                "BatchSize",
                "FunctionResponseTypes",
                "MaximumBatchingWindowInSeconds",
            ];
            let mut settings = pick(&names);
            settings["from"] = json!(source.arn().unwrap().rsplit(':').next());
            settings
        }
        "Schedule" => pick(&["Schedule"]),
        other => panic!("{other}"),
    }
}

fn sorted(mut settings: Vec<(String, String)>) -> Vec<(String, String)> {
    settings.sort();
    settings
}

#[tokio::test]
async fn event_sources_are_those_of_the_local_stack() {
    let timeouts: Arc<Mutex<BTreeMap<String, Duration>>> = Arc::default();
    let noted = Arc::clone(&timeouts);
    let local = Local::start_wrapped(Options::default(), move |function| {
        let name = function.name().to_owned();
        noted.lock().unwrap().insert(name, function.timeout());
        function
    });
    let local = local.await.unwrap();
    let functions = functions(&Stack::deploy(&[]));
    let by_us = local.event_sources().filter_map(|source| {
        let (kind, settings) = settings(source)?;
        Some((source.function.clone(), format!("{kind} {settings}")))
    });
    let by_aws = functions.values().flat_map(|function| {
        let called = |source: &Source| {
            (
                function.name.clone(),
                format!("{} {}", source.kind, deployed(source)),
            )
        };
        function.sources.iter().map(called)
    });
    assert_eq!(sorted(by_us.collect()), sorted(by_aws.collect()));

    // Timeouts are the same as in the local stack.
    let there = functions
        .values()
        .map(|of| (of.name.clone(), Duration::from_secs(of.timeout_seconds)));
    assert_eq!(*timeouts.lock().unwrap(), there.collect());

    let ruled = local
        .event_sources()
        .filter_map(|source| match source.kind {
            EventSourceKind::Rule(name) => Some((name, source.function.as_str())),
            _ => None,
        });
    let ruled: BTreeMap<&str, &str> = ruled.collect();
    for rule in deployed_rules() {
        assert_eq!(ruled.get(rule.name), Some(&rule.function));
    }
    soon("the end", local.stop()).await;
}

#[test]
fn asynchronous_invocations_have_the_settings_of_the_table() {
    let deployed = functions(&Stack::deploy(&[]));
    for spec in FUNCTIONS {
        let functions::EventSource::Rules(settings) = spec.event_source else {
            continue;
        };
        let config = &deployed[spec.name].properties["EventInvokeConfig"];
        let retries = config["MaximumRetryAttempts"].as_u64().unwrap();
        let age = config["MaximumEventAgeInSeconds"].as_u64().unwrap();
        let queue = text(&config["DestinationConfig"]["OnFailure"]["Destination"]);
        let queue = queue.rsplit(':').next().unwrap();
        let expected = (
            u64::from(settings.max_retries),
            settings.max_event_age.as_secs(),
            settings.on_failure,
        );
        assert_eq!((retries, age, queue), expected, "{}", spec.name);
    }
}

fn visibility(resources: &[Resource], arn: &str) -> u64 {
    let name = arn.rsplit(':').next().unwrap();
    let queue = resources
        .iter()
        .find(|of| of.kind == "AWS::SQS::Queue" && text(&of.properties["QueueName"]) == name);
    let queue = queue.unwrap_or_else(|| panic!("no queue {arn}"));
    queue.properties["VisibilityTimeout"].as_u64().unwrap()
}

#[tokio::test]
async fn timeouts_fit_together() {
    let root = Stack::deploy(&[]);
    let resources = root.resources();
    let sdk = antumbra_lambda_kit::sdk::config(None);
    let times = sdk.timeout_config().unwrap();
    let (attempt, operation) = (
        times.operation_attempt_timeout().unwrap(),
        times.operation_timeout().unwrap(),
    );
    assert!(times.connect_timeout().unwrap() < attempt);
    assert!(attempt < operation);
    for (name, function) in functions(&root) {
        let Function {
            timeout_seconds: timeout,
            ..
        } = function;
        assert!(operation < Duration::from_secs(timeout), "{name}");
        for source in function.sources.iter().filter(|of| of.kind == "SQS") {
            let hidden = visibility(&resources, &source.arn().unwrap());
            assert!(hidden >= TIMES_HIDDEN * timeout, "{name} {source:?}");
        }
        if name == antumbra_http_api::NAME {
            assert!(timeout <= GATEWAY_SECONDS);
        }
    }
}
