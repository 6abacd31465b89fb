//! Chapter: registrations send every change to a queue, and one threshold crossing to a topic.

use antumbra_service::shadows::ShadowId;
use serde_json::json;

use super::report::{DemoFailure, DemoReport, DemoResult};
use super::stack::DemoStack;

const QUEUE: &str = "freezer-history.fifo";

/// Versions written by earlier chapters.
const BEFORE: u64 = 10;

pub(super) async fn run(stack: &DemoStack, report: &mut DemoReport) -> DemoResult {
    report.chapter(
        "Registrations send notifications",
        "The table's stream calls the listener, which sends old, new and diff to the matching targets.",
    );
    let mut wall = stack.connect(&["alarms/#"]).await?;
    let freezer = ShadowId::new("freezer").map_err(|error| DemoFailure::new("freezer", error))?;
    report.action("freezer warms up: -16 °C, -14 °C, -13 °C");
    for (value, minute) in [(-16, 20), (-14, 30), (-13, 40)] {
        let time = format!("2026-01-31T12:{minute}:00Z");
        let document = json!({ "temperature": { "value": value, "timestamp": time } });
        let sent = stack.shadows.report(&freezer, &document).await;
        sent.map_err(|error| DemoFailure::new("report", error))?;
    }

    let mut versions = Vec::new();
    let mut last = json!(null);
    while versions.last() != Some(&(BEFORE + 3)) {
        last = stack.receive(QUEUE).await?;
        versions.push(last["version"].as_u64().unwrap_or_default());
    }
    report.check(
        "SQS has all 13 changes, numbered without a gap and in order",
        versions,
        (1..=BEFORE + 3).collect(),
    )?;
    let updated = &last["diff"]["updated"]["/temperature"];
    report.check(
        "the diff of the last one: /temperature from -14 to -13",
        (
            updated["old"]["value"].clone(),
            updated["new"]["value"].clone(),
        ),
        (json!(-14), json!(-13)),
    )?;

    let alarm = wall.next_on(stack, "alarms/freezer").await?;
    let value = |side: &str| alarm[side]["temperature"]["value"].clone();
    report.check(
        "MQTT alarms/freezer: one alarm, at the crossing of -15 °C (-16 to -14)",
        (value("old"), value("new"), alarm["version"].clone()),
        (json!(-16), json!(-14), json!(BEFORE + 2)),
    )
}
