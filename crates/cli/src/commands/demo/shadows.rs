//! Chapters: reports, a late value, a conflict, and an acknowledged desired value.

use std::sync::Arc;

use antumbra_service::shadows::{
    DocumentSet, Shadow, ShadowId, State, Update, UpdateResult, Version,
};
use antumbra_shadow::Document;
use serde_json::{Value, json};

use super::report::{DemoFailure, DemoReport, DemoResult};
use super::stack::DemoStack;

fn id(text: &str) -> DemoResult<ShadowId> {
    ShadowId::new(text).map_err(|error| DemoFailure::new(text, error))
}

fn document(value: &Value) -> DemoResult<Document> {
    Document::from_value(value).map_err(|error| DemoFailure::new("document", error))
}

async fn read(stack: &DemoStack, id: &ShadowId) -> DemoResult<Shadow> {
    let found = stack.shadows.read(id, DocumentSet::Both).await;
    found.map_err(|error| DemoFailure::new("read", error))
}

fn verdicts(updated: &UpdateResult) -> Vec<String> {
    let mut verdicts = Vec::new();
    if let Some(changes) = &updated.reported_changes {
        changes.for_each(|change| verdicts.push(change.verdict.as_str().to_owned()));
    }
    verdicts
}

pub(super) async fn report(stack: &DemoStack, report: &mut DemoReport) -> DemoResult {
    report.chapter(
        "Devices report",
        "Values merge one by one, by their measurement time.",
    );
    let freezer = id("freezer")?;
    let document =
        |value: f64, time: &str| json!({ "temperature": { "value": value, "timestamp": time } });
    let send = async |value: f64, time: &str| {
        let sent = stack.shadows.report(&freezer, &document(value, time)).await;
        sent.map_err(|error| DemoFailure::new("report", error))
    };

    report.action("freezer reports -18.5 °C, measured at 12:00");
    let first = send(-18.5, "2026-01-31T12:00:00Z").await?;
    report.check("reported, version 1", first.version(State::Reported).0, 1)?;
    report.action("freezer reports -17 °C, measured at 12:10");
    let second = send(-17.0, "2026-01-31T12:10:00Z").await?;
    report.check("reported, version 2", second.version(State::Reported).0, 2)?;
    report.action("a message of 12:05 arrives late: -19 °C");
    let late = send(-19.0, "2026-01-31T12:05:00Z").await?;
    report.check(
        "not stored; the verdict is `kept: stale`",
        (late.written, verdicts(&late)),
        (false, vec!["kept: stale".to_owned()]),
    )
}

pub(super) async fn conflict(stack: &DemoStack, report: &mut DemoReport) -> DemoResult {
    report.chapter(
        "Two writers at once",
        "A write names the expected version, or is merged again after a conflict.",
    );
    let freezer = id("freezer")?;
    let door = document(&json!({ "door": "open" }))?;
    report.action("a service that saw version 1 writes door: open, on that condition");
    let stale = Update::report(freezer.clone(), door.clone()).expected(Version(1));
    match stack.shadows.update(stale.retries(0)).await {
        Err(error) if error.is_conflict() => report.checked("rejected: version 2 is stored"),
        Err(error) => return Err(DemoFailure::new("expected a conflict, found", error)),
        Ok(_) => return Err(DemoFailure("expected a conflict, found none".to_owned())),
    }
    report.action("eight services each add a field, all at the same time");
    let mut writers = tokio::task::JoinSet::new();
    for n in 0..8 {
        let shadows = Arc::clone(&stack.shadows);
        let update = Update::report(
            freezer.clone(),
            document(&json!({ format!("shelf{n}"): n }))?,
        );
        writers.spawn(async move { shadows.update(update.retries(100)).await });
    }
    let mut attempts = 0;
    while let Some(writer) = writers.join_next().await {
        let updated = writer.map_err(|error| DemoFailure::new("writer", error))?;
        attempts += updated
            .map_err(|error| DemoFailure::new("writer", error))?
            .attempts;
    }
    let found = read(stack, &freezer).await?.reported;
    let found = found.ok_or_else(|| DemoFailure("nothing is stored".to_owned()))?;
    let shelves = (0..8).filter(|n| found.document.to_string().contains(&format!("shelf{n}")));
    report.check(
        format!("all eight are stored, version 10, after {attempts} attempts"),
        (shelves.count(), found.version.0),
        (8, 10),
    )
}

pub(super) async fn acknowledge(stack: &DemoStack, report: &mut DemoReport) -> DemoResult {
    report.chapter(
        "A desired value is acknowledged",
        "A desired value stays in the delta until the device reports it.",
    );
    let lamp = id("lamp")?;
    let delta = async || -> DemoResult<String> {
        let delta = read(stack, &lamp).await?.delta;
        Ok(delta.map_or("none".to_owned(), |delta| delta.to_string()))
    };
    report.action("lamp reports led: off; an app desires led: on");
    let failed = |error| DemoFailure::new("lamp", error);
    let off = json!({ "led": "off" });
    stack.shadows.report(&lamp, &off).await.map_err(failed)?;
    let on = json!({ "led": "on" });
    stack.shadows.desire(&lamp, &on).await.map_err(failed)?;
    let expected = r#"{"led":"on"}"#.to_owned();
    report.check(r#"delta: {"led":"on"}"#, delta().await?, expected)?;
    report.action("lamp switches on and reports it");
    let done = stack.shadows.report(&lamp, &json!({ "led": "on" })).await;
    let done = done.map_err(failed)?;
    let mut pointers = Vec::new();
    done.acknowledged
        .for_each(|pointer, _| pointers.push(pointer.to_owned()));
    report.check("acknowledged: /led", pointers, vec!["/led".to_owned()])?;
    report.check("the delta is empty", delta().await?, "{}".to_owned())
}
