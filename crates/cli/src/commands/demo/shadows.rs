//! Reports, a late value, a conflict, and a wish that comes true.

use std::sync::Arc;

use antumbra_service::shadows::{
    DocumentSet, Shadow, ShadowId, State, Update, UpdateResult, Version,
};
use antumbra_shadow::Document;
use serde_json::{Value, json};

use super::stage::DemoStack;
use super::story::{DemoFailure, DemoReport, DemoResult};

fn id(text: &str) -> DemoResult<ShadowId> {
    ShadowId::new(text).map_err(|error| DemoFailure::of(text, error))
}

fn document(value: &Value) -> DemoResult<Document> {
    Document::from_value(value).map_err(|error| DemoFailure::of("document", error))
}

async fn read(stage: &DemoStack, id: &ShadowId) -> DemoResult<Shadow> {
    let found = stage.shadows.read(id, DocumentSet::Both).await;
    found.map_err(|error| DemoFailure::of("read", error))
}

/// The verdicts of a report, as the writer gets them.
fn verdicts(updated: &UpdateResult) -> Vec<String> {
    let changes = updated.reported_changes.as_ref();
    changes
        .map(|changes| {
            changes
                .iter()
                .map(|change| change.verdict.as_str().to_owned())
                .collect()
        })
        .unwrap_or_default()
}

pub(super) async fn report(stage: &DemoStack, story: &mut DemoReport) -> DemoResult {
    story.chapter(
        "Devices report",
        "Values merge one by one, by the time the device measured each.",
    );
    let freezer = id("freezer")?;
    let say =
        |value: f64, time: &str| json!({ "temperature": { "value": value, "timestamp": time } });
    let report = async |value: f64, time: &str| {
        let sent = stage.shadows.report(&freezer, &say(value, time)).await;
        sent.map_err(|error| DemoFailure::of("report", error))
    };

    story.does("freezer reports -18.5 °C, measured at 12:00");
    let first = report(-18.5, "2026-01-31T12:00:00Z").await?;
    story.expects(
        "reported, version 1",
        first.version(State::Reported),
        Version(1),
    )?;
    story.does("freezer reports -17 °C, measured at 12:10");
    let second = report(-17.0, "2026-01-31T12:10:00Z").await?;
    story.expects(
        "reported, version 2",
        second.version(State::Reported),
        Version(2),
    )?;
    story.does("a message of 12:05 arrives late: -19 °C");
    let late = report(-19.0, "2026-01-31T12:05:00Z").await?;
    story.expects(
        "kept out, and its sender is told: kept: stale",
        (late.written, verdicts(&late)),
        (false, vec!["kept: stale".to_owned()]),
    )
}

pub(super) async fn conflict(stage: &DemoStack, story: &mut DemoReport) -> DemoResult {
    story.chapter(
        "Two writers at once",
        "A write names the version it saw, or is merged again until it fits.",
    );
    let freezer = id("freezer")?;
    let door = document(&json!({ "door": "open" }))?;
    story.does("a service that saw version 1 writes door: open, on that condition");
    let stale = Update::report(freezer.clone(), door.clone()).expected(Version(1));
    match stage.shadows.update(stale.retries(0)).await {
        Err(error) if error.is_conflict() => story.sees("refused: version 2 is stored"),
        other => return Err(DemoFailure(format!("expected a conflict, found {other:?}"))),
    }
    story.does("eight services each add a field, all at the same time");
    let mut writers = tokio::task::JoinSet::new();
    for n in 0..8 {
        let shadows = Arc::clone(&stage.shadows);
        let update = Update::report(
            freezer.clone(),
            document(&json!({ format!("shelf{n}"): n }))?,
        );
        writers.spawn(async move { shadows.update(update.retries(100)).await });
    }
    let mut attempts = 0;
    while let Some(writer) = writers.join_next().await {
        let updated = writer.map_err(|error| DemoFailure::of("writer", error))?;
        attempts += updated
            .map_err(|error| DemoFailure::of("writer", error))?
            .attempts;
    }
    let found = read(stage, &freezer).await?.reported;
    let found = found.ok_or_else(|| DemoFailure("nothing is stored".to_owned()))?;
    let shelves = (0..8).filter(|n| found.document.to_string().contains(&format!("shelf{n}")));
    story.expects(
        format!("all eight are there, version 10; {attempts} attempts were made"),
        (shelves.count(), found.version),
        (8, Version(10)),
    )
}

pub(super) async fn wish(stage: &DemoStack, story: &mut DemoReport) -> DemoResult {
    story.chapter(
        "A wish comes true",
        "What is desired stays in the delta until the device says it is so.",
    );
    let lamp = id("lamp")?;
    let delta = async || -> DemoResult<String> {
        let delta = read(stage, &lamp).await?.delta;
        Ok(delta.map_or("none".to_owned(), |delta| delta.to_string()))
    };
    story.does("lamp reports led: off; somebody desires led: on");
    let failed = |error| DemoFailure::of("lamp", error);
    let off = json!({ "led": "off" });
    stage.shadows.report(&lamp, &off).await.map_err(failed)?;
    let on = json!({ "led": "on" });
    stage.shadows.desire(&lamp, &on).await.map_err(failed)?;
    let expected = r#"{"led":"on"}"#.to_owned();
    story.expects(r#"delta: {"led":"on"}"#, delta().await?, expected)?;
    story.does("lamp switches on and reports it");
    let done = stage.shadows.report(&lamp, &json!({ "led": "on" })).await;
    let done = done.map_err(failed)?;
    let pointers: Vec<_> = done
        .acknowledged
        .iter()
        .map(|a| a.pointer.as_str())
        .collect();
    story.expects("acknowledged: /led", pointers, vec!["/led"])?;
    story.expects("the delta is empty", delta().await?, "{}".to_owned())
}
