//! A device that was programmed for AWS IoT Device Shadow.

use serde_json::json;

use super::stage::DemoStack;
use super::story::{DemoReport, DemoResult};

pub(super) async fn speak(stage: &DemoStack, story: &mut DemoReport) -> DemoResult {
    story.chapter(
        "A device speaks AWS IoT Device Shadow",
        "The same topics and documents under another prefix.",
    );
    let mut fan = stage.connect("fan", &["shadow/fan/#"]).await?;
    story.does("fan publishes to shadow/fan/update: reported off, desired on");
    let update = json!({ "state": { "reported": { "power": "off" }, "desired": { "power": "on" } },
        "clientToken": "fan-1" });
    fan.publish("shadow/fan/update", &update).await?;
    let accepted = fan.hears(stage, "shadow/fan/update/accepted").await?;
    story.expects(
        "shadow/fan/update/accepted, with its token",
        &accepted["clientToken"],
        &json!("fan-1"),
    )?;
    let delta = fan.hears(stage, "shadow/fan/update/delta").await?;
    story.expects(
        "shadow/fan/update/delta, from the table's stream: power on",
        &delta["state"],
        &json!({ "power": "on" }),
    )?;
    fan.publish("shadow/fan/get", &json!({})).await?;
    let got = fan.hears(stage, "shadow/fan/get/accepted").await?;
    story.expects(
        "shadow/fan/get/accepted: desired, reported and delta",
        got["state"].clone(),
        json!({ "desired": { "power": "on" }, "reported": { "power": "off" }, "delta": { "power": "on" } }),
    )
}
