//! Compares alarms with queues, functions, metrics and the runbook.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use antumbra_lambda_kit::batch::BatchSummary;
use antumbra_lambda_kit::metrics::{self, Unit};
use antumbra_local::queues::definitions::QUEUES;
use antumbra_shadow::Timestamp;
use serde_json::Value;

use super::functions::functions;
use super::template::{Resource, Stack, text};

const RUNBOOK: &str = include_str!("../../../../infra/RUNBOOK.md");
/// A deployment with all alarms and the dashboard.
const PROD: (&str, &str) = ("Profile", "prod");
/// Placeholder for a function in the runbook.
const ANY: &str = "FUNCTION";

/// A metric of an alarm.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Metric {
    namespace: String,
    name: String,
    dimensions: BTreeMap<String, String>,
    period: u64,
}

/// Number of metrics that the alarms of a deployment watch.
pub(crate) fn alarm_metrics(root: &Stack) -> usize {
    let resources = root.resources().into_iter();
    let alarms = resources.filter(|resource| resource.kind == "AWS::CloudWatch::Alarm");
    alarms.map(|resource| alarm(resource).metrics.len()).sum()
}

#[derive(Debug)]
struct Alarm {
    name: String,
    metrics: Vec<Metric>,
    properties: Value,
}

fn metric(of: &Value, period: &Value) -> Metric {
    let dimensions = of["Dimensions"].as_array().unwrap().iter();
    Metric {
        namespace: text(&of["Namespace"]),
        name: text(&of["MetricName"]),
        dimensions: dimensions
            .map(|one| (text(&one["Name"]), text(&one["Value"])))
            .collect(),
        period: period.as_u64().unwrap(),
    }
}

fn alarm(resource: Resource) -> Alarm {
    let properties = resource.properties;
    let metrics = match properties["Metrics"].as_array() {
        Some(metrics) => metrics
            .iter()
            .filter_map(|one| one.get("MetricStat"))
            .map(|stat| metric(&stat["Metric"], &stat["Period"]))
            .collect(),
        None => vec![metric(&properties, &properties["Period"])],
    };
    Alarm {
        name: properties.get("AlarmName").map_or(resource.id, text),
        metrics,
        properties,
    }
}

fn alarms(root: &Stack) -> Vec<Alarm> {
    let resources = root.resources().into_iter();
    let alarms = resources.filter(|resource| resource.kind == "AWS::CloudWatch::Alarm");
    let alarms: Vec<Alarm> = alarms.map(alarm).collect();
    assert!(alarms.len() > 50);
    alarms
}

impl Alarm {
    fn watches(&self, name: &str, dimension: (&str, &str)) -> bool {
        let (key, value) = dimension;
        let same = |metric: &Metric| {
            metric.name == name && metric.dimensions.get(key).map(String::as_str) == Some(value)
        };
        self.metrics.iter().any(same)
    }
}

#[test]
fn every_queue_has_an_alarm() {
    let alarms = alarms(&Stack::deploy(&[PROD]));
    let watched = |metric: &str, queue: &str| {
        let one = alarms
            .iter()
            .any(|alarm| alarm.watches(metric, ("QueueName", queue)));
        assert!(one, "no alarm watches {metric} of {queue}");
    };
    for queue in QUEUES {
        match queue.dead_letters {
            Some((dead, _)) => {
                watched("ApproximateAgeOfOldestMessage", queue.name);
                watched("ApproximateNumberOfMessagesVisible", dead);
            }
            // Others read it, or its messages wait for a target.
            None if ["antumbra-outbound", "antumbra-spill.fifo"].contains(&queue.name) => {
                watched("ApproximateAgeOfOldestMessage", queue.name);
            }
            None => watched("ApproximateNumberOfMessagesVisible", queue.name),
        }
    }
    // No alarm watches a queue that does not exist.
    let known: BTreeSet<&str> = QUEUES.iter().map(|queue| queue.name).collect();
    for metric in alarms.iter().flat_map(|alarm| &alarm.metrics) {
        if let Some(queue) = metric.dimensions.get("QueueName") {
            assert!(known.contains(queue.as_str()), "{queue}");
        }
    }
}

#[test]
fn an_existing_inbound_queue_is_watched_instead_of_ours() {
    let given = "arn:aws:sqs:us-east-1:123456789012:theirs";
    let alarms = alarms(&Stack::deploy(&[PROD, ("InboundQueueArn", given)]));
    let age = alarms
        .iter()
        .find(|alarm| alarm.name == "antumbra-inbound-age");
    let queue = ("QueueName", "theirs");
    assert!(age.unwrap().watches("ApproximateAgeOfOldestMessage", queue));
}

#[test]
fn every_function_has_alarms_on_errors_throttles_and_its_own_timeout() {
    let root = Stack::deploy(&[PROD]);
    let (alarms, functions) = (alarms(&root), functions(&root));
    let find = |name: &str| alarms.iter().find(|alarm| alarm.name == name);
    for (name, function) in &functions {
        let deployed = format!("antumbra-{name}");
        for (suffix, metric) in [("errors", "Errors"), ("throttles", "Throttles")] {
            let alarm = find(&format!("{deployed}-{suffix}")).unwrap();
            assert!(
                alarm.watches(metric, ("FunctionName", &deployed)),
                "{alarm:?}"
            );
        }
        let duration = find(&format!("{deployed}-duration")).unwrap();
        let own = duration.watches("duration", ("function", &deployed));
        assert!(own || duration.watches("Duration", ("FunctionName", &deployed)));
        let expression = duration.properties["Metrics"][0]["Expression"].as_str();
        let milliseconds = function.timeout_seconds * 1000;
        assert_eq!(
            expression,
            Some(&*format!("100 * m0 / {milliseconds}")),
            "{name}"
        );
    }
    for metric in alarms.iter().flat_map(|alarm| &alarm.metrics) {
        if let Some(function) = metric.dimensions.get("FunctionName") {
            let name = function.strip_prefix("antumbra-").unwrap();
            assert!(functions.contains_key(name), "{function}");
        }
    }
}

/// The longest line of metrics that each function logs: those of as many invocations as fit.
pub(crate) fn metric_lines() -> Vec<String> {
    // A sweep that has read its queue; otherwise it logs no delay.
    let swept = antumbra_liveness_sweep::Report {
        behind_milliseconds: Some(1),
        ..Default::default()
    };
    let batch = |counters| BatchSummary::new(counters).metrics();
    let request = antumbra_message_requests::RequestSummary {
        code: None,
        rejected: false,
    };
    let update = antumbra_shadow_requests::RequestSummary {
        operation: antumbra_wire::shadow_mqtt::Operation::Update,
        code: None,
        dropped: false,
    };
    let mut functions = BTreeMap::from([
        (
            antumbra_stream_listener::NAME,
            antumbra_stream_listener::metrics(&Default::default()),
        ),
        (
            antumbra_history_writer::NAME,
            antumbra_history_writer::metrics(&Default::default()),
        ),
        (
            antumbra_message_ingest::NAME,
            batch(antumbra_message_ingest::COUNTERS),
        ),
        (
            antumbra_sensor_ingest::NAME,
            batch(antumbra_sensor_ingest::COUNTERS),
        ),
        (
            antumbra_webhook_deliver::NAME,
            batch(antumbra_webhook_deliver::COUNTERS),
        ),
        (
            antumbra_liveness_sweep::NAME,
            swept.metrics(Duration::from_millis(5)),
        ),
        (antumbra_shadow_requests::NAME, update.metrics()),
    ]);
    let operations = antumbra_wire::rules::Operation::ALL.iter();
    functions.extend(operations.map(|operation| (operation.function(), request.metrics())));
    let line = |(function, mut metrics): (&str, Vec<metrics::Metric>)| {
        let is_batch = metrics.iter().any(|metric| metric.name == "failed");
        // Batches have an oldest message and the runtime adds the duration.
        if is_batch && function != antumbra_liveness_sweep::NAME {
            metrics.push(metrics::Metric::new(
                "oldestMessageAge",
                123.0,
                Unit::Milliseconds,
            ));
        }
        metrics.push(metrics::Metric::new("duration", 12.345, Unit::Milliseconds));
        let mut collector = metrics::Collector::default();
        let now = Timestamp::default();
        let lines = (0..200).filter_map(|_| collector.add(&metrics, now));
        let lines = lines.map(|collected| metrics::line(function, now, &collected));
        lines.max_by_key(String::len).unwrap()
    };
    functions.into_iter().map(line).collect()
}

/// Names of the metrics that each function logs.
pub(crate) fn logged_metrics() -> BTreeMap<String, BTreeSet<String>> {
    let mut counted = BTreeMap::new();
    for line in metric_lines() {
        let line: Value = serde_json::from_str(&line).unwrap();
        let [directive] = &line["_aws"]["CloudWatchMetrics"].as_array().unwrap()[..] else {
            panic!("{line}");
        };
        assert_eq!(directive["Namespace"], "Antumbra");
        assert_eq!(directive["Dimensions"], serde_json::json!([["function"]]));
        let metrics = directive["Metrics"].as_array().unwrap().iter();
        let names: BTreeSet<String> = metrics.map(|metric| text(&metric["Name"])).collect();
        // Every declared metric has a value.
        let has_value = |name: &String| line[name].is_number() || line[name].is_array();
        assert!(names.iter().all(has_value), "{line}");
        counted.insert(text(&line["function"]), names);
    }
    counted
}

#[test]
fn own_metrics_of_alarms_and_dashboard_are_logged_by_the_functions() {
    let root = Stack::deploy(&[PROD]);
    let logged = logged_metrics();
    let known = |function: &str, name: &str| {
        let function = function.strip_prefix("antumbra-").unwrap();
        let names = logged.get(function);
        let names = names.unwrap_or_else(|| panic!("{function} logs no metrics"));
        assert!(names.contains(name), "{function} does not log {name}");
    };
    let mut watched = 0;
    for metric in alarms(&root).iter().flat_map(|alarm| &alarm.metrics) {
        if metric.namespace == "Antumbra" {
            known(&metric.dimensions["function"], &metric.name);
            watched += 1;
        }
    }
    assert!(watched >= 6, "{watched}");
    let resources = root.resources();
    let dashboard = resources
        .iter()
        .find(|resource| resource.kind == "AWS::CloudWatch::Dashboard");
    let body = text(&dashboard.unwrap().properties["DashboardBody"]);
    let body: Value = serde_json::from_str(&body).unwrap();
    let mut shown = 0;
    for widget in body["widgets"].as_array().unwrap() {
        for metric in widget["properties"]["metrics"].as_array().unwrap() {
            if metric[0] == "Antumbra" {
                assert_eq!(metric[2], "function", "{metric}");
                known(metric[3].as_str().unwrap(), metric[1].as_str().unwrap());
                shown += 1;
            }
        }
    }
    assert!(shown > 20, "{shown}");
}

/// Metrics are collected over invocations, but a process may not be invoked again: what alarms count is logged at once.
/// The sweep is invoked every minute.
#[test]
fn counts_that_alarms_watch_are_logged_at_once() {
    let root = Stack::deploy(&[PROD]);
    let alarms = alarms(&root);
    let metrics = alarms.iter().flat_map(|alarm| &alarm.metrics);
    let own = metrics.filter(|metric| metric.namespace == "Antumbra");
    let own: BTreeSet<&str> = own.map(|metric| &metric.name[..]).collect();
    let of_the_sweep = BTreeSet::from(["behind", "duration"]);
    let counts: Vec<&str> = own.difference(&of_the_sweep).copied().collect();
    assert_eq!(counts, metrics::AT_ONCE);
}

#[test]
fn runbook_and_alarms_agree() {
    let root = Stack::deploy(&[PROD]);
    let functions = functions(&root);
    let section = |alarm: &Alarm| {
        let name = alarm.name.strip_prefix("antumbra-").unwrap();
        let of_function = functions.keys().find_map(|function| {
            let suffix = name.strip_prefix(function.as_str())?.strip_prefix('-')?;
            Some(format!("antumbra-{ANY}-{suffix}"))
        });
        of_function.unwrap_or_else(|| alarm.name.clone())
    };
    let deployed: BTreeSet<String> = alarms(&root).iter().map(section).collect();
    let written: BTreeSet<String> = RUNBOOK
        .lines()
        .filter_map(|line| line.strip_prefix("### "))
        .flat_map(|line| line.split(", "))
        .map(str::to_owned)
        .collect();
    assert_eq!(deployed, written);
    // Alarms named in the text exist.
    for word in RUNBOOK.split(|c: char| c.is_whitespace() || "`,;:()".contains(c)) {
        let is_alarm = ["-age", "-errors", "-throttles", "-duration", "-unfinished"]
            .iter()
            .any(|suffix| word.starts_with("antumbra-") && word.ends_with(suffix));
        if is_alarm {
            let known = written.contains(word) || alarms(&root).iter().any(|a| a.name == word);
            assert!(known, "the runbook names {word}, which does not exist");
        }
    }
}

/// Alarms and metrics are charged by the month, even of a deployment that nobody uses.
#[test]
fn only_prod_has_alarms_a_dashboard_and_metrics_unless_they_are_switched() {
    let parts = |given: &[(&str, &str)]| {
        let root = Stack::deploy(given);
        let has = |kind: &str| root.resources().iter().any(|of| of.kind == kind);
        let functions = functions(&root);
        let metrics = functions
            .values()
            .map(|of| of.environment["METRICS"].clone());
        let metrics: BTreeSet<String> = metrics.collect();
        (
            has("AWS::CloudWatch::Alarm"),
            has("AWS::CloudWatch::Dashboard"),
            metrics == BTreeSet::from(["true".to_owned()]),
        )
    };
    assert_eq!(parts(&[]), (false, false, false));
    assert_eq!(parts(&[PROD]), (true, true, true));
    assert_eq!(parts(&[("Alarms", "on")]), (true, false, false));
    assert_eq!(parts(&[("Dashboard", "on")]), (false, true, false));
    assert_eq!(parts(&[("Metrics", "on")]), (false, false, true));
    assert_eq!(parts(&[PROD, ("Alarms", "off")]), (false, true, true));
    let email = Stack::deploy(&[("AlarmEmail", "ops@example.com")]).resources();
    assert!(email.iter().all(|of| of.kind != "AWS::SNS::Topic"));
}

/// CodeDeploy looks at these alarms while it shifts invocations to new versions.
#[test]
fn a_canary_is_rolled_back_if_a_new_version_of_any_function_fails() {
    let root = Stack::deploy(&[("Canary", "Canary10Percent5Minutes")]);
    let resources = root.resources().into_iter();
    let alarms = resources.filter(|of| of.kind == "AWS::CloudWatch::Alarm");
    let alarms: Vec<Alarm> = alarms.map(alarm).collect();
    assert_eq!(alarms.len(), 2);
    let preference = &root.globals()["DeploymentPreference"];
    let ids = ["RollbackRequests", "RollbackBatches"];
    assert_eq!(preference["Alarms"], serde_json::json!(ids));
    assert_eq!(preference["Enabled"], "true");
    let metrics = alarms.iter().flat_map(|alarm| &alarm.metrics);
    let mut watched = BTreeSet::new();
    for metric in metrics {
        let function = &metric.dimensions["FunctionName"];
        assert_eq!(metric.dimensions["Resource"], format!("{function}:live"));
        let version = &metric.dimensions["ExecutedVersion"];
        assert!(version.ends_with(".Version.Version"), "{version}");
        watched.insert(function.strip_prefix("antumbra-").unwrap().to_owned());
    }
    assert_eq!(watched, functions(&root).into_keys().collect());
    let without = Stack::deploy(&[]);
    assert_eq!(
        without.globals()["DeploymentPreference"]["Enabled"],
        "false"
    );
}

#[test]
fn alarms_notify_the_configured_topic_and_treat_missing_data() {
    let quiet = alarms(&Stack::deploy(&[PROD]));
    assert!(
        quiet
            .iter()
            .all(|alarm| alarm.properties.get("AlarmActions").is_none())
    );
    let topic = "arn:aws:sns:us-east-1:123456789012:pager";
    let loud = alarms(&Stack::deploy(&[PROD, ("AlarmTopicArn", topic)]));
    for alarm in &loud {
        for actions in ["AlarmActions", "OKActions"] {
            assert_eq!(
                alarm.properties[actions],
                serde_json::json!([topic]),
                "{}",
                alarm.name
            );
        }
        // The sweep runs every minute. For all others, no data means that nothing happened.
        let missing = match alarm.name.as_str() {
            "antumbra-sweep-missing" => "breaching",
            _ => "notBreaching",
        };
        assert_eq!(
            alarm.properties["TreatMissingData"], missing,
            "{}",
            alarm.name
        );
        let description = text(&alarm.properties["AlarmDescription"]);
        assert!(description.ends_with('.'), "{description}");
        // CloudWatch allows ten metrics in an alarm, and a day of evaluation.
        assert!((1..=10).contains(&alarm.metrics.len()), "{}", alarm.name);
        let periods = alarm.properties["EvaluationPeriods"].as_u64().unwrap();
        assert!(periods * alarm.metrics[0].period <= 86_400);
    }
    let emailed = Stack::deploy(&[PROD, ("AlarmEmail", "ops@example.com")]);
    let topics = emailed.resources().into_iter();
    let topics: Vec<_> = topics.filter(|one| one.kind == "AWS::SNS::Topic").collect();
    assert_eq!(topics.len(), 1);
    assert_eq!(
        topics[0].properties["Subscription"][0]["Endpoint"],
        "ops@example.com"
    );
}
