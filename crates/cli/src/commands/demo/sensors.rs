//! Chapters: a lock that changes, is lost and restored, and the webhook that receives its events.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use antumbra_local::http::AllowedHosts;
use antumbra_local::receiver::{self, Received};
use serde_json::{Value, json};

use super::report::{DemoFailure, DemoReport, DemoResult};
use super::stack::DemoStack;

const SIGNALS: &str = "antumbra-signals";

/// Deliveries that the endpoint fails first.
const FAILURES: u32 = 2;

pub(super) struct Endpoint {
    receiver: receiver::Receiver,
    secret: String,
}

impl Endpoint {
    /// Starts an endpoint that fails the first deliveries with 500 and accepts the others.
    async fn start() -> DemoResult<Endpoint> {
        let failures = AtomicU32::new(0);
        let respond = move |_: &receiver::Verdict| match failures.fetch_add(1, Ordering::Relaxed) {
            FAILURES.. => 204,
            _ => 500,
        };
        let receiver = receiver::start(0, Vec::new(), AllowedHosts::default(), respond).await;
        Ok(Endpoint {
            receiver: receiver.map_err(|error| DemoFailure::new("receiver", error))?,
            secret: String::new(),
        })
    }

    fn url(&self) -> String {
        format!("http://{}/hook", self.receiver.address())
    }

    async fn next(&mut self, stack: &DemoStack) -> DemoResult<Received> {
        let delivery = stack
            .within_timeout("a delivery", self.receiver.next())
            .await?;
        delivery.ok_or_else(|| DemoFailure("the receiver stopped".to_owned()))
    }
}

fn body(delivery: &Received) -> Value {
    serde_json::from_str(&delivery.body).unwrap_or(Value::Null)
}

async fn signal(stack: &DemoStack, value: u8) -> DemoResult {
    let signal = json!({ "sensor_id": "lock-1", "data": value });
    stack.send(SIGNALS, &signal.to_string()).await
}

pub(super) async fn change(stack: &DemoStack, report: &mut DemoReport) -> DemoResult<Endpoint> {
    report.chapter(
        "A lock changes, and a webhook is called",
        "Registration over HTTP, signals over SQS, deliveries signed by Standard Webhooks and retried.",
    );
    let mut endpoint = Endpoint::start().await?;
    let lock = json!({ "id": "lock-1", "address": "Back door", "type": "lock",
        "location": { "city": "Poznań", "building": "A", "floor": "0", "room": "hall" } });
    let refused = stack.http("POST", "/v1/sensors", None, &lock).await?;
    report.check("POST /v1/sensors without a token: 401", refused.0, 401)?;
    let made = stack.api("POST", "/v1/sensors", lock).await?;
    report.check("with the token: 201, lock-1 is registered", made.0, 201)?;
    // Mode `every` keeps the order of events of different kinds.
    let client = json!({ "id": "night-watch", "name": "Night watch", "mode": "every", "url": endpoint.url() });
    let (status, client) = stack.api("POST", "/v1/clients", client).await?;
    report.check("POST /v1/clients: 201, with a secret", status, 201)?;
    endpoint.secret = client["secret"].as_str().unwrap_or_default().to_owned();
    let path = "/v1/clients/night-watch/sensors/lock-1";
    let linked = stack.api("PUT", path, Value::Null).await?;
    report.check("night-watch is linked to lock-1: 204", linked.0, 204)?;

    report.action("lock-1 sends 0 (the first value is no event), then 1");
    signal(stack, 0).await?;
    wait_until(stack, "/v1/sensors/lock-1/state", |state| {
        state["value"] == 0
    })
    .await?;
    signal(stack, 1).await?;
    let mut attempts = Vec::new();
    let mut ids = Vec::new();
    let mut last = None;
    while attempts.last() != Some(&204) {
        let delivery = endpoint.next(stack).await?;
        attempts.push(delivery.status);
        ids.push(delivery.id.clone());
        last = Some(delivery);
    }
    let last = last.ok_or_else(|| DemoFailure("no delivery".to_owned()))?;
    report.check(
        "the endpoint fails twice with 500, the third attempt succeeds",
        attempts,
        vec![500, 500, 204],
    )?;
    ids.dedup();
    report.check("all three have the same id", ids.len(), 1)?;
    report.check(
        "signed with the client's secret",
        last.is_signed_with(&endpoint.secret),
        true,
    )?;
    let event = body(&last);
    report.check(
        "state.changed, from 0 to 1",
        (
            &event["type"],
            &event["data"]["previous"],
            &event["data"]["current"],
        ),
        (&json!("state.changed"), &json!(0), &json!(1)),
    )?;
    let path = "/v1/clients/night-watch/deliveries?status=delivered";
    let attempts = |page: &Value| page["deliveries"][0]["attempts"].as_array().map(Vec::len);
    wait_until(stack, path, |page| attempts(page) == Some(3)).await?;
    report.checked("GET /v1/clients/night-watch/deliveries: delivered, with its three attempts");
    Ok(endpoint)
}

/// Reads from the API until the response is as wanted.
async fn wait_until(stack: &DemoStack, path: &str, wanted: impl Fn(&Value) -> bool) -> DemoResult {
    let polling = async {
        while !wanted(&stack.api("GET", path, Value::Null).await?.1) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    };
    stack.within_timeout(path, polling).await?
}

pub(super) async fn silence(
    stack: &DemoStack,
    report: &mut DemoReport,
    mut endpoint: Endpoint,
) -> DemoResult {
    report.chapter(
        "The lock is lost and restored",
        "After an hour of silence the sweep finds it. The demo moves the clock instead of waiting.",
    );
    report.action("an hour and two minutes pass; the sweep runs, as it does every minute");
    stack.clock.shift(Duration::from_secs(62 * 60));
    let swept = stack.stack.sweep().await;
    swept.map_err(|error| DemoFailure::new("liveness-sweep", error))?;
    let lost = endpoint.next(stack).await?;
    let event = body(&lost);
    report.check(
        "connection.lost: silent for more than 3600 s, last state 1",
        (
            &event["type"],
            &event["data"]["thresholdSeconds"],
            &event["data"]["lastState"],
        ),
        (&json!("connection.lost"), &json!(3600), &json!(1)),
    )?;
    let swept = stack.stack.sweep().await;
    swept.map_err(|error| DemoFailure::new("liveness-sweep", error))?;
    report.action("another sweep runs, then lock-1 sends 0");
    signal(stack, 0).await?;
    let (back, changed) = (endpoint.next(stack).await?, endpoint.next(stack).await?);
    let kinds = [&back, &changed].map(|delivery| body(delivery)["type"].clone());
    report.check(
        "connection.restored, then state.changed",
        kinds,
        [json!("connection.restored"), json!("state.changed")],
    )?;
    let numbers: Vec<i64> = [&lost, &back, &changed]
        .iter()
        .filter_map(|delivery| body(delivery)["sequence"].as_i64())
        .collect();
    let first = numbers.first().copied().unwrap_or_default();
    report.check(
        "sequence numbers without a gap",
        numbers,
        vec![first, first + 1, first + 2],
    )?;
    let signed = [lost, back, changed];
    report.check(
        "all signed",
        signed
            .iter()
            .all(|delivery| delivery.is_signed_with(&endpoint.secret)),
        true,
    )
}
