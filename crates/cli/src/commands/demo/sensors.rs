//! A lock that changes, falls silent and comes back, and the webhook that hears of it.

use std::time::Duration;

use serde_json::{Value, json};

use super::receiver::Receiver;
use super::stage::DemoStack;
use super::story::{DemoFailure, DemoReport, DemoResult};

const SIGNALS: &str = "antumbra-signals";

/// The chapter's lock, its client, and the secret they share.
pub(super) struct Watched {
    receiver: Receiver,
    secret: String,
}

async fn signal(stage: &DemoStack, value: u8) -> DemoResult {
    let signal = json!({ "sensor_id": "lock-1", "data": value });
    stage.send(SIGNALS, &signal.to_string()).await
}

pub(super) async fn change(stage: &DemoStack, story: &mut DemoReport) -> DemoResult<Watched> {
    story.chapter(
        "A lock changes, and a webhook hears of it",
        "Registered over HTTP, signals over SQS, deliveries signed as Standard Webhooks says, and retried.",
    );
    let mut receiver = Receiver::start(2).await?;
    let lock = json!({ "id": "lock-1", "address": "Back door", "type": "lock",
        "location": { "city": "Poznań", "building": "A", "floor": "0", "room": "hall" } });
    let refused = stage.ask("POST", "/v1/sensors", None, &lock).await?;
    story.expects("POST /v1/sensors without a token: 401", refused.0, 401)?;
    let made = stage.api("POST", "/v1/sensors", lock).await?;
    story.expects("with it: 201, lock-1 is registered", made.0, 201)?;
    let client = json!({ "id": "night-watch", "name": "Night watch", "url": receiver.url() });
    let (status, client) = stage.api("POST", "/v1/clients", client).await?;
    story.expects("POST /v1/clients: 201, with a secret", status, 201)?;
    let secret = client["secret"].as_str().unwrap_or_default().to_owned();
    let path = "/v1/clients/night-watch/sensors/lock-1";
    let linked = stage.api("PUT", path, Value::Null).await?;
    story.expects("night-watch is linked to lock-1: 204", linked.0, 204)?;

    story.does("lock-1 says 0 (its first word, told to nobody), then 1");
    signal(stage, 0).await?;
    until_value(stage, 0).await?;
    signal(stage, 1).await?;
    let mut attempts = Vec::new();
    let mut ids = Vec::new();
    let mut last = None;
    while attempts.last() != Some(&204) {
        let delivery = receiver.next(stage).await?;
        attempts.push(delivery.answered);
        ids.push(delivery.id.clone());
        last = Some(delivery);
    }
    let last = last.ok_or_else(|| DemoFailure("no delivery".to_owned()))?;
    story.expects(
        "the endpoint fails twice with 500, the third attempt gets through",
        attempts,
        vec![500, 500, 204],
    )?;
    ids.dedup();
    story.expects("all three under one id", ids.len(), 1)?;
    story.expects(
        "signed with the client's secret",
        last.is_signed_with(&secret),
        true,
    )?;
    let said = last.says();
    story.expects(
        "state.changed, from 0 to 1",
        (
            &said["type"],
            &said["data"]["previous"],
            &said["data"]["current"],
        ),
        (&json!("state.changed"), &json!(0), &json!(1)),
    )?;
    until_kept(stage).await?;
    story.sees("GET /v1/clients/night-watch/deliveries: delivered, with its three attempts");
    Ok(Watched { receiver, secret })
}

async fn until_value(stage: &DemoStack, value: u8) -> DemoResult {
    let looking = async {
        loop {
            let path = "/v1/sensors/lock-1/state";
            let (_, state) = stage.api("GET", path, Value::Null).await?;
            if state["value"] == value {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    stage.soon("the lock's state", looking).await?
}

async fn until_kept(stage: &DemoStack) -> DemoResult {
    let looking = async {
        loop {
            let path = "/v1/clients/night-watch/deliveries?status=delivered";
            let (_, page) = stage.api("GET", path, Value::Null).await?;
            let attempts = page["deliveries"][0]["attempts"].as_array();
            if attempts.is_some_and(|attempts| attempts.len() == 3) {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    stage.soon("the history of the delivery", looking).await?
}

pub(super) async fn silence(
    stage: &DemoStack,
    story: &mut DemoReport,
    watched: Watched,
) -> DemoResult {
    story.chapter(
        "It falls silent, and comes back",
        "An hour without a word: the sweep finds it. Here the clock is moved, and nobody waits.",
    );
    let Watched {
        mut receiver,
        secret,
    } = watched;
    story.does("an hour and two minutes pass; the sweep comes, as it does every minute");
    stage.clock.shift(Duration::from_secs(62 * 60));
    let swept = stage.stack.sweep().await;
    swept.map_err(|error| DemoFailure::of("liveness-sweep", error))?;
    let lost = receiver.next(stage).await?;
    let said = lost.says();
    story.expects(
        "connection.lost: silent for more than 3600 s, last state 1",
        (
            &said["type"],
            &said["data"]["threshold_seconds"],
            &said["data"]["last_state"],
        ),
        (&json!("connection.lost"), &json!(3600), &json!(1)),
    )?;
    let swept = stage.stack.sweep().await;
    swept.map_err(|error| DemoFailure::of("liveness-sweep", error))?;
    story.does("another sweep, and then lock-1 says 0");
    signal(stage, 0).await?;
    let (back, changed) = (receiver.next(stage).await?, receiver.next(stage).await?);
    let kinds = [&back, &changed].map(|delivery| delivery.says()["type"].clone());
    story.expects(
        "one loss, one return: connection.restored, then state.changed",
        kinds,
        [json!("connection.restored"), json!("state.changed")],
    )?;
    let numbers: Vec<i64> = [&lost, &back, &changed]
        .iter()
        .filter_map(|delivery| delivery.says()["sequence"].as_i64())
        .collect();
    let first = numbers.first().copied().unwrap_or_default();
    story.expects(
        "numbered without a gap",
        numbers,
        vec![first, first + 1, first + 2],
    )?;
    let signed = [lost, back, changed];
    story.expects(
        "each signed",
        signed
            .iter()
            .all(|delivery| delivery.is_signed_with(&secret)),
        true,
    )
}
