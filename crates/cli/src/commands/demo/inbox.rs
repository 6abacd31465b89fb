//! Chapter: messages of a queue, read and deleted over MQTT.

use serde_json::{Value, json};

use super::report::{DemoReport, DemoResult};
use super::stack::{DemoStack, Device};

const THING: &str = "meter-3";

/// Sends a request over MQTT and waits for the response.
async fn request(
    stack: &DemoStack,
    device: &mut Device,
    operation: &str,
    rest: &str,
) -> DemoResult<Value> {
    request_with(stack, device, operation, rest, json!({})).await
}

async fn request_with(
    stack: &DemoStack,
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
    device.next_on(stack, &topic).await
}

pub(super) async fn run(stack: &DemoStack, report: &mut DemoReport) -> DemoResult {
    report.chapter(
        "The inbox",
        "Messages go from SQS to DynamoDB and are read over MQTT, 3.1.1 or 5.",
    );
    let filters = ["notification/meter-3", "response/#"];
    let mut reader = stack.connect(&filters).await?;
    report.action(
        "meter-3 sends two messages to the queue antumbra-inbound, one with a 20-digit number",
    );
    let exact = r#"{"thingName":"meter-3","epochTime":1769860800,"kwh":12345678901234567890}"#;
    stack.send("antumbra-inbound", exact).await?;
    let first = reader.next_on(stack, "notification/meter-3").await?;
    let first = first["messageId"].as_str().unwrap_or_default().to_owned();
    report.check(
        "MQTT notification/meter-3 announces the first",
        first.starts_with("1769860800-"),
        true,
    )?;
    let later = json!({ "thingName": THING, "epochTime": 1_769_864_400, "kwh": 5 });
    stack.send("antumbra-inbound", &later.to_string()).await?;
    let second = reader.next_on(stack, "notification/meter-3").await?;
    let second = second["messageId"].as_str().unwrap_or_default().to_owned();
    report.check("and the second", second.starts_with("1769864400-"), true)?;

    let found = request(stack, &mut reader, "query", "").await?;
    report.check(
        "request/query: oldest and newest",
        (&found["oldestMessageId"], &found["newestMessageId"]),
        (&json!(first), &json!(second)),
    )?;
    let got = request(stack, &mut reader, "get", &format!("/{first}")).await?;
    report.check(
        "request/get: the message, with its number exact",
        got["body"]["kwh"].to_string(),
        "12345678901234567890".to_owned(),
    )?;
    let next = request(stack, &mut reader, "next", &format!("/{first}")).await?;
    report.check(
        "request/next: the second",
        &next["nextMessageId"],
        &json!(second),
    )?;
    let before = request(stack, &mut reader, "prev", &format!("/{second}")).await?;
    report.check(
        "request/prev: the first",
        before.to_string().contains(&first),
        true,
    )?;
    let list = request(stack, &mut reader, "list", "").await?;
    report.check(
        "request/list: both, oldest first",
        &list["messageIds"],
        &json!([first, second]),
    )?;
    let devices = request(stack, &mut reader, "devices", "").await?;
    report.check(
        "request/devices: meter-3 sent messages in this hour",
        devices.to_string().contains(THING),
        true,
    )?;
    let deleted = request(stack, &mut reader, "delete", &format!("/{first}")).await?;
    report.check(
        "request/delete: the first",
        &deleted["messageId"],
        &json!(first),
    )?;
    let gone = request(stack, &mut reader, "get", &format!("/{first}")).await?;
    report.check(
        "request/get: Message not available",
        &gone["error"],
        &json!("Message not available"),
    )?;

    report.action("a service sends request/send with a message for meter-3");
    let order = json!({ "message": { "relay": "off" }, "idempotencyKey": "order-1" });
    request_with(stack, &mut reader, "send", "", order).await?;
    let sent = stack.receive("antumbra-outbound").await?;
    report.check(
        "it is in the queue antumbra-outbound",
        (&sent["uuid"], &sent["message"]),
        (&json!(THING), &json!({ "relay": "off" })),
    )?;

    report.action("a text that is not JSON is sent to the queue");
    stack.send("antumbra-inbound", "not JSON").await?;
    stack.wait_for_quarantined("not JSON").await?;
    report.checked("it is in antumbra-quarantine, with the reason");
    Ok(())
}
