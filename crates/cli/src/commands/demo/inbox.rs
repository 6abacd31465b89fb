//! A message in a queue, found, read and deleted over MQTT.

use serde_json::{Value, json};

use super::stage::{DemoStack, Device};
use super::story::{DemoReport, DemoResult};

const THING: &str = "meter-3";

/// Asks over MQTT and waits for the answer.
async fn ask(
    stage: &DemoStack,
    device: &mut Device,
    operation: &str,
    rest: &str,
) -> DemoResult<Value> {
    ask_with(stage, device, operation, rest, json!({})).await
}

async fn ask_with(
    stage: &DemoStack,
    device: &mut Device,
    operation: &str,
    rest: &str,
    mut payload: Value,
) -> DemoResult<Value> {
    let token = format!("tour-{operation}");
    let topic = match operation {
        "devices" => "request/devices".to_owned(),
        _ => format!("request/{operation}/{THING}{rest}"),
    };
    payload["token"] = json!(token);
    device.publish(&topic, &payload).await?;
    let topic = format!("response/{operation}/{token}");
    device.hears(stage, &topic).await
}

pub(super) async fn read(stage: &DemoStack, story: &mut DemoReport) -> DemoResult {
    story.chapter(
        "A message waits in the inbox",
        "SQS to DynamoDB; read over MQTT requests, by any device that speaks 3.1.1 or 5.",
    );
    let filters = ["notification/meter-3", "response/#"];
    let mut reader = stage.connect("reader", &filters).await?;
    story.does(
        "meter-3 sends two messages to the queue antumbra-inbound, one with a 20-digit number",
    );
    let exact = r#"{"thingName":"meter-3","epochTime":1769860800,"kwh":12345678901234567890}"#;
    stage.send("antumbra-inbound", exact).await?;
    let first = reader.hears(stage, "notification/meter-3").await?;
    let first = first["messageId"].as_str().unwrap_or_default().to_owned();
    story.expects(
        "MQTT notification/meter-3 tells of the first",
        first.starts_with("1769860800-"),
        true,
    )?;
    let later = json!({ "thingName": THING, "epochTime": 1_769_864_400, "kwh": 5 });
    stage.send("antumbra-inbound", &later.to_string()).await?;
    let second = reader.hears(stage, "notification/meter-3").await?;
    let second = second["messageId"].as_str().unwrap_or_default().to_owned();
    story.expects("and of the second", second.starts_with("1769864400-"), true)?;

    let found = ask(stage, &mut reader, "query", "").await?;
    story.expects(
        "request/query: oldest and newest",
        (&found["oldestMessageId"], &found["newestMessageId"]),
        (&json!(first), &json!(second)),
    )?;
    let got = ask(stage, &mut reader, "get", &format!("/{first}")).await?;
    story.expects(
        "request/get: the message, every digit as sent",
        got["body"]["kwh"].to_string(),
        "12345678901234567890".to_owned(),
    )?;
    let next = ask(stage, &mut reader, "next", &format!("/{first}")).await?;
    story.expects(
        "request/next: the second",
        &next["nextMessageId"],
        &json!(second),
    )?;
    let before = ask(stage, &mut reader, "prev", &format!("/{second}")).await?;
    story.expects(
        "request/prev: back to the first",
        before.to_string().contains(&first),
        true,
    )?;
    let list = ask(stage, &mut reader, "list", "").await?;
    story.expects(
        "request/list: both, oldest first",
        &list["messageIds"],
        &json!([first, second]),
    )?;
    let devices = ask(stage, &mut reader, "devices", "").await?;
    story.expects(
        "request/devices: meter-3 was heard of this hour",
        devices.to_string().contains(THING),
        true,
    )?;
    let deleted = ask(stage, &mut reader, "delete", &format!("/{first}")).await?;
    story.expects(
        "request/delete: the first",
        &deleted["messageId"],
        &json!(first),
    )?;
    let gone = ask(stage, &mut reader, "get", &format!("/{first}")).await?;
    story.expects(
        "request/get: Message not available",
        &gone["error"],
        &json!("Message not available"),
    )?;

    story.does("a service answers: request/send with a message for meter-3");
    let order = json!({ "message": { "relay": "off" }, "idempotencyKey": "order-1" });
    ask_with(stage, &mut reader, "send", "", order).await?;
    let sent = stage.receive("antumbra-outbound").await?;
    story.expects(
        "the queue antumbra-outbound has it",
        (&sent["uuid"], &sent["message"]),
        (&json!(THING), &json!({ "relay": "off" })),
    )?;

    story.does("somebody sends what is no message");
    stage.send("antumbra-inbound", "not JSON").await?;
    stage.quarantined("not JSON").await?;
    story.sees("antumbra-quarantine has it, with the reason");
    Ok(())
}
