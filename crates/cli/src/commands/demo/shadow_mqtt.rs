//! Chapter: a device that speaks the protocol of AWS IoT Device Shadow.

use serde_json::json;

use super::report::{DemoReport, DemoResult};
use super::stack::DemoStack;

pub(super) async fn run(stack: &DemoStack, report: &mut DemoReport) -> DemoResult {
    report.chapter(
        "A device speaks AWS IoT Device Shadow",
        "The same topics and documents under the prefix shadow/.",
    );
    let mut fan = stack.connect(&["shadow/fan/#"]).await?;
    report.action("fan publishes to shadow/fan/update: reported off, desired on");
    let update = json!({ "state": { "reported": { "power": "off" }, "desired": { "power": "on" } },
        "clientToken": "fan-1" });
    fan.publish("shadow/fan/update", &update).await?;
    let accepted = fan.next_on(stack, "shadow/fan/update/accepted").await?;
    report.check(
        "shadow/fan/update/accepted, with its token",
        &accepted["clientToken"],
        &json!("fan-1"),
    )?;
    let delta = fan.next_on(stack, "shadow/fan/update/delta").await?;
    report.check(
        "shadow/fan/update/delta, from the table's stream: power on",
        &delta["state"],
        &json!({ "power": "on" }),
    )?;
    fan.publish("shadow/fan/get", &json!({})).await?;
    let got = fan.next_on(stack, "shadow/fan/get/accepted").await?;
    report.check(
        "shadow/fan/get/accepted: desired, reported and delta",
        got["state"].clone(),
        json!({ "desired": { "power": "on" }, "reported": { "power": "off" }, "delta": { "power": "on" } }),
    )
}
