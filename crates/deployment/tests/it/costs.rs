//! Costs per operation: counts and prices the calls of the functions and compares them with the table in docs/costs.md,
//! which `scripts/write-costs` writes.
//!
//! The tests invoke the functions themselves with full batches, because the batches of a stack's event sources depend on
//! timing.

mod bill;
mod scene;

use std::path::{Path, PathBuf};

use antumbra_cost::{Bill, Counts, Fleet, Idle, Profile, Transport, Unit};
use serde_json::Value;

use crate::alarms::{alarm_metrics, logged_metrics, metric_lines};
use crate::functions::{Function, Source, functions};
use crate::template::Stack;
use scene::{QUEUE_BATCH, STREAM_BATCH, Scene};

/// Beginnings of the generated tables in docs/costs.md, and the end of each.
const OPERATIONS: &str = "<!-- costs: written by scripts/write-costs -->";
const SWITCHES: &str = "<!-- switches: written by scripts/write-costs -->";
const CAPACITY: &str = "<!-- capacity: written by scripts/write-costs -->";
const END: &str = "<!-- end of costs -->";

/// A row of the table: operation, bill, and the price of AWS IoT Device Shadow for the same, if it has it.
struct Row {
    what: &'static str,
    bill: Bill,
    theirs: Option<Bill>,
}

async fn count() -> Counts {
    let scene = Scene::start().await;
    let report_over_mqtt = scene.report_over_mqtt().await;
    let report_without_response = scene.report_without_response().await;
    let report_over_http = scene.report_over_http().await;
    let acknowledging_report_over_http = scene.acknowledging_report().await;
    let [notification_to_queue, documents, delta] = scene.notifications().await;
    let recorded_change = scene.recorded_change().await;
    let followed_change = scene.followed_change().await;
    let inbox_message = scene.inbox_message().await;
    let inbox_read_over_mqtt = scene.inbox_get().await;
    let signal = scene.sensor_message().await;
    let sweep = scene.sweep().await;
    let delivery = scene.delivery().await;
    scene.stop().await;
    Counts {
        report_over_mqtt,
        report_without_response,
        report_over_http,
        acknowledging_report_over_http,
        notification_to_queue,
        documents,
        delta,
        recorded_change,
        followed_change,
        inbox_message,
        inbox_read_over_mqtt,
        signal,
        sweep,
        delivery,
        dev: idle(&Stack::deploy(&[])),
        prod: idle(&Stack::deploy(&[("Profile", "prod")])),
    }
}

/// The parts of a deployment that cost without any device.
fn idle(root: &Stack) -> Idle {
    let functions = functions(root);
    let sources = functions.values().flat_map(|function| &function.sources);
    let is_polled = |source: &&Source| {
        source.kind == "SQS" && source.properties.get("Enabled") != Some(&Value::from(false))
    };
    let queues = sources.filter(is_polled);
    let (fifo, standard): (Vec<String>, Vec<String>) = queues
        .filter_map(|source| source.arn())
        .partition(|arn| arn.ends_with(".fifo"));
    let sweep = &functions[antumbra_liveness_sweep::NAME].sources[0];
    let sweeps_per_hour = match sweep.properties["Schedule"].as_str() {
        Some("rate(1 minute)") => 60,
        Some("rate(5 minutes)") => 12,
        other => panic!("{other:?}"),
    };
    let resources = root.resources();
    let dashboards = resources
        .iter()
        .filter(|resource| resource.kind == "AWS::CloudWatch::Dashboard");
    let publishes = |function: &Function| {
        let metrics = function.environment.get("METRICS");
        metrics.is_none_or(|metrics| metrics == "true")
    };
    let publishing = functions.values().filter(|function| publishes(function));
    let logged = logged_metrics();
    let custom = publishing.filter_map(|function| logged.get(&function.name));
    Idle {
        polled_queues: standard.len() as u32,
        polled_fifo_queues: fifo.len() as u32,
        sweeps_per_hour,
        alarm_metrics: alarm_metrics(root) as u32,
        custom_metrics: custom.map(|names| names.len() as u32).sum(),
        dashboards: dashboards.count() as u32,
        log_bytes: match functions.values().any(publishes) {
            true => longest_line(),
            false => 0,
        },
        traced: functions
            .values()
            .any(|f| f.properties["Tracing"] == "Active"),
    }
}

/// Bytes of the longest line that a function logs at the default level if nothing goes wrong, with the 26 that CloudWatch
/// adds.
fn longest_line() -> u32 {
    let longest = metric_lines().into_iter().map(|line| line.len()).max();
    longest.unwrap() as u32 + 26
}

fn rows(counts: &Counts) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut row = |what, bill, theirs| rows.push(Row { what, bill, theirs });
    let (stream, queue) = (f64::from(STREAM_BATCH), f64::from(QUEUE_BATCH));
    let operation = Bill::default().and(Unit::ShadowOperation, 1.0);
    row(
        "a report over MQTT, with its response",
        counts.report_over_mqtt,
        Some(operation.and(Unit::IotMessage, 2.0)),
    );
    row(
        "a report over MQTT, with `ACCEPTED=requested`",
        counts.report_without_response,
        Some(operation.and(Unit::IotMessage, 1.0)),
    );
    row(
        "a report over Basic Ingest, with `ACCEPTED=requested`",
        counts.report_without_response.and(Unit::IotMessage, -1.0),
        Some(operation.and(Unit::IotMessage, 1.0)),
    );
    row(
        "a report over HTTP",
        counts.report_over_http,
        Some(operation),
    );
    row(
        "a report over HTTP that acknowledges a desired value",
        counts.acknowledging_report_over_http,
        Some(operation),
    );
    let rule = Bill::default().and(Unit::IotRule, 1.0);
    row(
        "a notification to a queue",
        counts.notification_to_queue.at(stream),
        Some(rule.and(Unit::Sqs, 1.0)),
    );
    row(
        "`documents` to one device",
        counts.documents.at(stream),
        Some(Bill::default().and(Unit::IotMessage, 1.0)),
    );
    row(
        "a comparison of reported and desired for `delta`",
        counts.delta.at(stream),
        None,
    );
    row(
        "a change in the history and the change feed",
        counts.recorded_change.at(stream),
        None,
    );
    row(
        "a change read from the feed, in pages of 100",
        counts.followed_change,
        None,
    );
    row(
        "an inbox message, stored",
        counts.inbox_message.at(queue),
        None,
    );
    row(
        "an inbox message, read over MQTT",
        counts.inbox_read_over_mqtt,
        None,
    );
    let message = counts.signal.at(queue);
    row("a sensor message", message, None);
    row(
        "a sensor for an hour, a message a minute, among 1,000",
        message.times(60.0).plus(counts.sweep.times(60.0 / 1000.0)),
        None,
    );
    row("a webhook delivery", counts.delivery, None);
    rows
}

fn table(rows: &[Row]) -> String {
    let mut table = String::new();
    table += "| per million | what AWS counts, each | Antumbra | AWS IoT Device Shadow |\n|---|---|---|---|\n";
    for row in rows {
        let theirs = row.theirs.as_ref();
        let theirs = theirs.map_or_else(String::new, |bill| {
            format!("${:.2}", bill.dollars_per_million())
        });
        table += &format!(
            "| {} | {} | ${:.2} | {theirs} |\n",
            row.what,
            row.bill,
            row.bill.dollars_per_million()
        );
    }
    table
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// 10,000 devices with a report a minute: the bill as the switches are set one after the other.
fn switches(counts: &Counts) -> String {
    let mut fleet = Fleet {
        devices: 10_000.0,
        reports_per_minute: 1.0,
        documents_subscribers: Some(0.0),
        profile: Profile::Prod,
        ..nobody()
    };
    let mut table = String::new();
    table += "| shadows of 10,000 devices, a report a minute | Antumbra | AWS IoT Device Shadow | ratio |\n|---|---|---|---|\n";
    let mut row = |what: &str, fleet: &Fleet| {
        let bill = fleet.estimate(counts).unwrap();
        let ours = bill.shadow_dollars + bill.history_dollars;
        let theirs = bill.device_shadow_dollars;
        table += &format!(
            "| {what} | ${ours:.0} | ${theirs:.0} | {:.2} |\n",
            ours / theirs
        );
    };
    row(
        "as AWS IoT does: `accepted` to each device, `documents` that nobody receives",
        &fleet,
    );
    fleet.documents_subscribers = None;
    row("registration `shadow-documents` switched off", &fleet);
    fleet.accepted = false;
    row("and `ACCEPTED=requested`", &fleet);
    fleet.transport = Transport::BasicIngest;
    row("and reports over Basic Ingest", &fleet);
    fleet.delta = false;
    row("and registration `shadow-delta` switched off", &fleet);
    fleet.history = true;
    row("with the history and the change feed", &fleet);
    table
}

/// Fleets with a report and a signal a minute, and two webhooks a day: use of each resource.
fn capacity(counts: &Counts) -> String {
    let sizes = [10_000.0, 100_000.0, 1_000_000.0];
    let resources = sizes.map(|size| {
        let fleet = Fleet {
            devices: size,
            reports_per_minute: 1.0,
            transport: Transport::BasicIngest,
            accepted: false,
            messages_per_day: 1.0,
            sensors: size,
            signals_per_minute: 1.0,
            webhooks_per_day: 2.0,
            profile: Profile::Prod,
            ..nobody()
        };
        fleet.capacity(counts).unwrap()
    });
    let mut table = String::new();
    table += "| devices and as many sensors: | 10,000 | 100,000 | 1,000,000 | raised by |\n|---|---|---|---|---|\n";
    for resource in &resources[2] {
        let used = resources.iter().map(|of| {
            let same = of.iter().find(|other| other.name == resource.name);
            format!("{:.0} %", same.unwrap().used() * 100.0)
        });
        let used = used.collect::<Vec<_>>().join(" | ");
        table += &format!("| {} | {used} | {} |\n", resource.name, resource.raise);
    }
    table
}

/// The page with a table in place of the one that is there.
fn with_table(page: &str, begin: &str, table: &str) -> String {
    let (before, rest) = page.split_once(begin).expect("the place of the table");
    let (_, after) = rest.split_once(END).expect("the end of the table");
    format!("{before}{begin}\n{table}{END}{after}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_documented_costs_and_those_of_the_command_are_the_counted_ones() {
    let counts = count().await;
    let path = workspace().join("docs/costs.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let counted_page = with_table(&page, OPERATIONS, &table(&rows(&counts)));
    let counted_page = with_table(&counted_page, SWITCHES, &switches(&counts));
    let counted_page = with_table(&counted_page, CAPACITY, &capacity(&counts));
    let counted = serde_json::to_string_pretty(&counts).unwrap() + "\n";
    let file = workspace().join("crates/cost/counts.json");
    if std::env::var_os("ANTUMBRA_WRITE_COSTS").is_some() {
        std::fs::write(&path, counted_page).unwrap();
        std::fs::write(&file, counted).unwrap();
        return;
    }
    let again = "scripts/write-costs writes it again";
    assert_eq!(page, counted_page, "{again}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), counted, "{again}");
}

/// A fleet without devices.
fn nobody() -> Fleet {
    Fleet {
        devices: 0.0,
        reports_per_minute: 0.0,
        transport: Transport::Mqtt,
        accepted: true,
        delta: true,
        notifications_per_report: 0.0,
        documents_subscribers: None,
        history: false,
        feed_readers: 0.0,
        messages_per_day: 0.0,
        sensors: 0.0,
        signals_per_minute: 0.0,
        webhooks_per_day: 0.0,
        profile: Profile::Dev,
        invocation_milliseconds: 20.0,
    }
}

/// Dollars a month of a deployment without any message.
fn idle_dollars(given: &[(&str, &str)]) -> f64 {
    let counts = Counts {
        dev: idle(&Stack::deploy(given)),
        ..Counts::of_this_version().unwrap()
    };
    nobody().estimate(&counts).unwrap().idle_dollars
}

/// The limits that `antumbra cost` knows are those of the code and of the templates.
#[test]
fn capacity_is_estimated_with_the_constants_of_the_product() {
    use antumbra_cost::capacity::product;
    use antumbra_service::sensors::DEFAULT_SHARDS;
    assert_eq!(product::LIVE_SHARDS, f64::from(DEFAULT_SHARDS));
    assert_eq!(
        product::SOURCE_SHARDS,
        f64::from(antumbra_dynamodb::SOURCE_SHARDS)
    );
    let published = antumbra_publish::channels::iot::CONCURRENT_CALLS;
    assert_eq!(product::PUBLISHED_AT_ONCE, published as f64);
    let root = Stack::deploy(&[]);
    let functions = functions(&root);
    for source in &functions[antumbra_webhook_deliver::NAME].sources {
        let most = &source.properties["ScalingConfig"]["MaximumConcurrency"];
        assert_eq!(most.as_f64(), Some(product::DELIVERIES_AT_ONCE));
    }
    let sources = &functions[antumbra_webhook_deliver::NAME].sources;
    let batches = sources.iter().map(|of| &of.properties["BatchSize"]);
    let largest = batches.filter_map(Value::as_f64).fold(0.0, f64::max);
    assert_eq!(largest, product::DELIVERY_BATCH);
    let sweep = &functions[antumbra_liveness_sweep::NAME];
    assert_eq!(
        sweep.properties["MemorySize"].as_f64(),
        Some(product::SWEEP_MEMORY)
    );
    let seconds = sweep.timeout_seconds as f64 - 10.0 - 5.0 - 2.0;
    assert_eq!(product::SWEEP_SECONDS, seconds);
}

#[test]
fn an_idle_development_deployment_costs_less_than_two_dollars_a_month() {
    let all = idle_dollars(&[]);
    assert!(all < 2.0, "{all}");
    let less = idle_dollars(&[("Inbox", "off"), ("Deliveries", "off")]);
    assert!(less < 1.0, "{less}");
    assert!(idle_dollars(&[("Profile", "prod")]) > 10.0);
}
