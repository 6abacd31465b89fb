//! Costs per operation: counts and prices the calls of the functions and compares them with the table in docs/costs.md,
//! which `scripts/write-costs` writes.
//!
//! The tests invoke the functions themselves with full batches, because the batches of a stack's event sources depend on
//! timing.

mod bill;
mod prices;
mod scene;

use std::path::Path;

use bill::Bill;
use scene::Scene;

const BEGIN: &str = "<!-- costs: written by scripts/write-costs -->";
const END: &str = "<!-- end of costs -->";

/// A row of the table: operation, bill, and the price of AWS IoT Device Shadow for the same, if it has it.
struct Row {
    what: &'static str,
    bill: Bill,
    theirs: Option<Bill>,
}

async fn rows() -> Vec<Row> {
    let mut scene = Scene::start().await;
    let row = |what, bill| Row {
        what,
        bill,
        theirs: None,
    };
    let beside = |what, bill, theirs| Row {
        what,
        bill,
        theirs: Some(theirs),
    };
    let operation = || Bill::default().shadow_operations(1.0);
    let mut rows = vec![
        beside(
            "a report over MQTT, with its response",
            scene.report_over_mqtt().await,
            operation().iot_messages(2.0),
        ),
        beside(
            "a report over HTTP",
            scene.report_over_http().await,
            operation(),
        ),
    ];
    rows.push(beside(
        "a report over HTTP that acknowledges a desired value",
        scene.fulfilling_report().await,
        operation(),
    ));
    let (queue, documents) = scene.notifications().await;
    rows.push(beside(
        "a notification to a queue",
        queue,
        Bill::default().iot_rules(1.0).sqs_requests(1.0),
    ));
    rows.push(beside(
        "`documents` to one device",
        documents,
        Bill::default().iot_messages(1.0),
    ));
    rows.push(row("an inbox message, stored", scene.inbox_message().await));
    rows.push(row(
        "an inbox message, read over MQTT",
        scene.inbox_get().await,
    ));
    let message = scene.sensor_message().await;
    rows.push(row("a sensor message", message.clone()));
    let sweep = scene.sweep().await;
    rows.push(row(
        "a sensor for an hour, a message a minute, among 1,000",
        message.times(60.0).plus(&sweep.times(60.0 / 1000.0)),
    ));
    rows.push(row("a webhook delivery", scene.delivery().await));
    scene.stop().await;
    rows
}

fn table(rows: &[Row]) -> String {
    let mut table = String::new();
    table += "| per million | what AWS counts, each | Antumbra | AWS IoT Device Shadow |\n|---|---|---|---|\n";
    for row in rows {
        let theirs = row.theirs.as_ref();
        let theirs = theirs.map_or_else(String::new, |bill| format!("${:.2}", bill.dollars()));
        table += &format!(
            "| {} | {} | ${:.2} | {theirs} |\n",
            row.what,
            row.bill,
            row.bill.dollars()
        );
    }
    table
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_documented_costs_are_the_counted_ones() {
    let table = table(&rows().await);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/costs.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the place of the table");
    let (said, after) = rest.split_once(END).expect("the end of the table");
    if std::env::var_os("ANTUMBRA_WRITE_COSTS").is_some() {
        let written = format!("{before}{BEGIN}\n{table}{END}{after}");
        std::fs::write(&path, written).unwrap();
        return;
    }
    assert_eq!(
        said.trim(),
        table.trim(),
        "scripts/write-costs writes it anew"
    );
}
