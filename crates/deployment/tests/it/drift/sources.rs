//! Event sources and timeouts are those of `FUNCTIONS`, which the local stack follows, and timeouts fit together.

use std::time::Duration;

use antumbra_dynamodb::{MAIN, MESSAGES};
use antumbra_lambda_kit::functions::{EventSource, FUNCTIONS, HISTORY_STREAM, STREAM};
use serde_json::{Value, json};

use crate::functions::{Function, Source, functions, on_failure};
use crate::template::{Resource, Stack, text};

/// AWS recommends a visibility timeout of six times the function's timeout.
const TIMES_HIDDEN: u64 = 6;
/// Maximum integration timeout of API Gateway.
const GATEWAY_SECONDS: u64 = 30;

/// The settings of a function's event sources in the template's notation, with the name of a stream's table or a queue
/// in place of its ARN. Rules are compared in `iot`.
fn expected(source: EventSource) -> Vec<(&'static str, Value)> {
    let report = json!(["ReportBatchItemFailures"]);
    let stream = |table: &str| {
        let settings = json!({
            "from": table,
            "StartingPosition": "TRIM_HORIZON",
            "BatchSize": STREAM.batch_size,
            // Order is kept per item, and a shadow has two.
            "ParallelizationFactor": match table == MAIN.name {
                true => 1,
                false => STREAM.parallelization,
            },
            "FunctionResponseTypes": report,
            "BisectBatchOnFunctionError": true,
            "MaximumRetryAttempts": STREAM.max_retries,
            "MaximumRecordAgeInSeconds": STREAM.max_record_age.as_secs(),
            "on failure": STREAM.on_failure,
        });
        ("DynamoDB", settings)
    };
    let queue = |name: &str, batch_size: u32| {
        let settings = json!({
            "from": name,
            "BatchSize": batch_size,
            "FunctionResponseTypes": report,
        });
        ("SQS", settings)
    };
    match source {
        EventSource::Streams {
            queue: name,
            batch_size,
        } => vec![
            stream(MAIN.name),
            stream(MESSAGES.name),
            queue(name, batch_size),
        ],
        EventSource::MainStream => {
            let (kind, mut settings) = stream(MAIN.name);
            settings["BatchSize"] = json!(HISTORY_STREAM.batch_size);
            settings["ParallelizationFactor"] = json!(HISTORY_STREAM.parallelization);
            settings["MaximumRetryAttempts"] = json!(HISTORY_STREAM.max_retries);
            let age = HISTORY_STREAM.max_record_age.as_secs();
            settings["MaximumRecordAgeInSeconds"] = json!(age);
            settings["on failure"] = json!(HISTORY_STREAM.on_failure);
            vec![(kind, settings)]
        }
        EventSource::Queues(queues) => {
            let queues = queues.iter().map(|(name, size)| queue(name, *size));
            queues.collect()
        }
        EventSource::Schedule { period } => {
            let minutes = period.as_secs() / 60;
            let unit = if minutes == 1 { "minute" } else { "minutes" };
            let schedule = format!("rate({minutes} {unit})");
            vec![("Schedule", json!({ "Schedule": schedule }))]
        }
        EventSource::Rules(_) | EventSource::HttpApi => Vec::new(),
    }
}

/// The settings of a deployed event source that change how events are delivered.
fn deployed(source: &Source) -> (&str, Value) {
    let mut settings = source.properties.clone();
    let members = settings.as_object_mut().unwrap();
    let others = [
        "Stream",
        "Queue",
        "DestinationConfig",
        "ScalingConfig",
        "RetryPolicy",
        "Name",
        "Description",
        "Enabled",
        "FilterCriteria",
        "MaximumBatchingWindowInSeconds",
        "Input",
    ];
    for other in others {
        members.remove(other);
    }
    members.retain(|_, value| !value.is_null());
    if let Some(arn) = source.arn() {
        let resource = arn.split(':').nth(5).unwrap();
        settings["from"] = json!(resource.split('/').nth(1).unwrap_or(resource));
    }
    if let Some(queue) = source.on_failure() {
        settings["on failure"] = json!(queue.rsplit(':').next());
    }
    (&source.kind, settings)
}

fn sorted(mut sources: Vec<(&str, Value)>) -> Vec<(&str, Value)> {
    sources.sort_by_key(|source| format!("{source:?}"));
    sources
}

/// A batch of one record costs as much as one of a hundred. FIFO queues have no window, and deliveries do not wait for one.
#[test]
fn batches_are_collected_for_a_second() {
    for (name, function) in functions(&Stack::deploy(&[])) {
        for source in function.sources {
            let Some(arn) = source.arn() else { continue };
            let window = source.properties.get("MaximumBatchingWindowInSeconds");
            let collects = !arn.ends_with(".fifo") && !arn.ends_with("-deliveries");
            assert_eq!(window, collects.then_some(&json!(1)), "{name} {arn}");
        }
    }
}

/// Lambda polls a queue all the time, which costs without any message.
#[test]
fn queues_of_parts_that_are_off_are_not_polled() {
    let polled = |given: &[(&str, &str)]| {
        let functions = functions(&Stack::deploy(given));
        let sources = functions.values().flat_map(|function| &function.sources);
        let sources = sources.filter(|of| of.properties.get("Enabled") != Some(&json!(false)));
        let queues = sources.filter(|of| of.kind == "SQS");
        let mut queues: Vec<String> = queues.map(|of| of.arn().unwrap()).collect();
        queues.sort();
        let names = queues.iter().map(|arn| arn.rsplit(':').next().unwrap());
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    let (rest, inbox) = (
        ["antumbra-signals", "antumbra-spill.fifo"],
        "antumbra-inbound",
    );
    let deliveries = ["antumbra-deliveries", "antumbra-deliveries.fifo"];
    let all = [deliveries.as_slice(), &[inbox], &rest].concat();
    assert_eq!(polled(&[]), all);
    assert_eq!(polled(&[("Inbox", "off")]), [deliveries, rest].concat());
    assert_eq!(polled(&[("Inbox", "off"), ("Deliveries", "off")]), rest);
}

/// Every shard belongs to the sweep of one group, and every sweep is invoked.
#[test]
fn sweeps_are_invoked_for_all_groups() {
    for groups in ["1", "4", "16"] {
        let root = Stack::deploy(&[("SweepGroups", groups), ("Profile", "prod")]);
        let functions = functions(&root);
        let [sweep] = &functions["liveness-sweep"].sources[..] else {
            panic!();
        };
        let mut inputs = vec![text(&sweep.properties["Input"])];
        let resources = root.resources();
        let of = |kind: &'static str| resources.iter().filter(move |of| of.kind == kind);
        for rule in of("AWS::Events::Rule") {
            assert_eq!(rule.properties["ScheduleExpression"], "rate(1 minute)");
            inputs.push(text(&rule.properties["Targets"][0]["Input"]));
        }
        let permitted = of("AWS::Lambda::Permission")
            .filter(|of| of.properties["Principal"] == "events.amazonaws.com");
        assert_eq!(permitted.count(), inputs.len() - 1);
        inputs.sort();
        let count: u32 = groups.parse().unwrap();
        let mut expected: Vec<String> = (0..count)
            .map(|group| format!("{{\"group\":{group},\"groups\":{groups}}}"))
            .collect();
        expected.sort();
        assert_eq!(inputs, expected);
    }
}

#[test]
fn event_sources_and_timeouts_are_those_of_the_code() {
    let slow = functions(&Stack::deploy(&[]));
    let schedule = &slow["liveness-sweep"].sources[0].properties["Schedule"];
    assert_eq!(schedule, "rate(5 minutes)");
    let functions = functions(&Stack::deploy(&[("Profile", "prod")]));
    for spec in FUNCTIONS {
        let function = &functions[spec.name];
        assert_eq!(
            function.timeout_seconds,
            spec.timeout.as_secs(),
            "{}",
            spec.name
        );
        let found = function.sources.iter().map(deployed).collect();
        assert_eq!(
            sorted(found),
            sorted(expected(spec.event_source)),
            "{}",
            spec.name
        );
        if let EventSource::Rules(settings) = spec.event_source {
            let config = &function.properties["EventInvokeConfig"];
            let queue = on_failure(config).unwrap();
            let expected = json!([
                settings.max_retries,
                settings.max_event_age.as_secs(),
                settings.on_failure,
            ]);
            let found = json!([
                config["MaximumRetryAttempts"],
                config["MaximumEventAgeInSeconds"],
                queue.rsplit(':').next(),
            ]);
            assert_eq!(found, expected, "{}", spec.name);
        }
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
