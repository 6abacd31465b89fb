//! Registrations that fire: every change to a queue in order, one crossing to a topic.

use antumbra_service::shadows::ShadowId;
use serde_json::json;

use super::stage::DemoStack;
use super::story::{DemoFailure, DemoReport, DemoResult};

const QUEUE: &str = "freezer-history.fifo";

/// Versions that the chapters before have written.
const BEFORE: u64 = 10;

pub(super) async fn fire(stage: &DemoStack, story: &mut DemoReport) -> DemoResult {
    story.chapter(
        "Registrations fire",
        "The table's stream calls the listener, which sends old, new and diff to whom it concerns.",
    );
    let mut wall = stage.connect("wall-display", &["alarms/#"]).await?;
    let freezer = ShadowId::new("freezer").map_err(|error| DemoFailure::of("freezer", error))?;
    story.does("freezer warms up: -16 °C, -14 °C, -13 °C");
    for (value, minute) in [(-16, 20), (-14, 30), (-13, 40)] {
        let time = format!("2026-01-31T12:{minute}:00Z");
        let report = json!({ "temperature": { "value": value, "timestamp": time } });
        let sent = stage.shadows.report(&freezer, &report).await;
        sent.map_err(|error| DemoFailure::of("report", error))?;
    }

    let mut versions = Vec::new();
    let mut last = json!(null);
    while versions.last() != Some(&(BEFORE + 3)) {
        last = stage.receive(QUEUE).await?;
        versions.push(last["version"].as_u64().unwrap_or_default());
    }
    story.expects(
        "SQS has all 13 changes, numbered without a gap and in order",
        versions,
        (1..=BEFORE + 3).collect(),
    )?;
    let updated = &last["diff"]["updated"]["/temperature"];
    story.expects(
        "the last one says what changed: /temperature, -14 to -13",
        (
            updated["old"]["value"].clone(),
            updated["new"]["value"].clone(),
        ),
        (json!(-14), json!(-13)),
    )?;

    let alarm = wall.hears(stage, "alarms/freezer").await?;
    let value = |side: &str| alarm[side]["temperature"]["value"].clone();
    story.expects(
        "MQTT alarms/freezer: one alarm, at the crossing of -15 °C (-16 to -14)",
        (value("old"), value("new"), alarm["version"].clone()),
        (json!(-16), json!(-14), json!(BEFORE + 2)),
    )
}
