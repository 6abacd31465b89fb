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
use prices::Unit;
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
    let scene = Scene::start().await;
    let mut rows = Vec::new();
    let mut row = |what, bill, theirs| rows.push(Row { what, bill, theirs });
    let operation = Bill::default().and(Unit::ShadowOperation, 1.0);
    row(
        "a report over MQTT, with its response",
        scene.report_over_mqtt().await,
        Some(operation.and(Unit::IotMessage, 2.0)),
    );
    row(
        "a report over HTTP",
        scene.report_over_http().await,
        Some(operation),
    );
    row(
        "a report over HTTP that acknowledges a desired value",
        scene.fulfilling_report().await,
        Some(operation),
    );
    let (queue, documents) = scene.notifications().await;
    let rule = Bill::default().and(Unit::IotRule, 1.0);
    row(
        "a notification to a queue",
        queue,
        Some(rule.and(Unit::Sqs, 1.0)),
    );
    row(
        "`documents` to one device",
        documents,
        Some(Bill::default().and(Unit::IotMessage, 1.0)),
    );
    row(
        "an inbox message, stored",
        scene.inbox_message().await,
        None,
    );
    row(
        "an inbox message, read over MQTT",
        scene.inbox_get().await,
        None,
    );
    let message = scene.sensor_message().await;
    row("a sensor message", message, None);
    let sweep = scene.sweep().await;
    row(
        "a sensor for an hour, a message a minute, among 1,000",
        message.times(60.0).plus(sweep.times(60.0 / 1000.0)),
        None,
    );
    row("a webhook delivery", scene.delivery().await, None);
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
    let (written_table, after) = rest.split_once(END).expect("the end of the table");
    if std::env::var_os("ANTUMBRA_WRITE_COSTS").is_some() {
        let written = format!("{before}{BEGIN}\n{table}{END}{after}");
        std::fs::write(&path, written).unwrap();
        return;
    }
    assert_eq!(
        written_table.trim(),
        table.trim(),
        "scripts/write-costs writes it anew"
    );
}
