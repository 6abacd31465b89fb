//! Chapter: the past of a shadow.

use std::time::Duration;

use antumbra_service::shadows::{ClientToken, ShadowId, Update};
use antumbra_shadow::Document;
use serde_json::{Value, json};

use super::report::{DemoFailure, DemoReport, DemoResult};
use super::stack::DemoStack;

const FREEZER: &str = "/v1/shadows/cold-room";
/// Pause between two looks at the history.
const POLL: Duration = Duration::from_millis(100);

fn document(value: &Value) -> DemoResult<Document> {
    Document::from_value(value).map_err(|error| DemoFailure::new("document", error))
}

/// Carries out an update and returns the time of the write.
async fn write(stack: &DemoStack, update: Update) -> DemoResult<String> {
    let written = stack.shadows.update(update).await;
    let written = written.map_err(|error| DemoFailure::new("cold-room", error))?;
    let held = written.reported.or(written.desired);
    held.map(|held| held.timestamp.to_string())
        .ok_or_else(|| DemoFailure("nothing was written".to_owned()))
}

async fn get(stack: &DemoStack, path: &str) -> DemoResult<Value> {
    let (_, found) = stack.api("GET", path, Value::Null).await?;
    Ok(found)
}

pub(super) async fn run(stack: &DemoStack, report: &mut DemoReport) -> DemoResult {
    report.chapter(
        "The past of a cold room",
        "Every change is recorded: the state at any time, and who changed what.",
    );
    let room = || ShadowId::new("cold-room").map_err(|error| DemoFailure::new("cold-room", error));
    let token = ClientToken::new("night-shift");
    let token = token.map_err(|error| DemoFailure::new("token", error))?;
    report.action("cold-room reports -18 °C; somebody desires -10 °C; it reports -9 °C");
    let cold = Update::report(room()?, document(&json!({ "temperature": -18 }))?);
    let cold = write(stack, cold).await?;
    let setpoint = Update::desire(room()?, document(&json!({ "setpoint": -10 }))?);
    write(stack, setpoint.client_token(token)).await?;
    let warm = Update::report(room()?, document(&json!({ "temperature": -9 }))?);
    write(stack, warm).await?;

    let recorded = async {
        loop {
            let found = get(stack, &format!("{FREEZER}/history")).await?;
            let count = found["entries"].as_array().map_or(0, Vec::len);
            if count == 3 {
                return DemoResult::Ok(());
            }
            tokio::time::sleep(POLL).await;
        }
    };
    stack
        .within_timeout("the history of cold-room", recorded)
        .await??;
    report.checked("three changes are recorded");
    let before = get(stack, &format!("{FREEZER}?at={cold}")).await?;
    report.check(
        "the state before it warmed up: -18 °C, and no setpoint",
        (
            before["reported"]["document"]["temperature"].as_i64(),
            before.get("desired").is_some(),
        ),
        (Some(-18), false),
    )?;
    let who = get(stack, &format!("{FREEZER}/history?path=/setpoint")).await?;
    report.check(
        "the setpoint was changed once, by night-shift",
        (
            who["entries"].as_array().map_or(0, Vec::len),
            who["entries"][0]["clientToken"].as_str(),
        ),
        (1, Some("night-shift")),
    )
}
