//! Shadows over HTTP and MQTT, with all kinds of writes.

use antumbra_dynamodb::{DynamoDbSuspensions, MAIN};
use antumbra_service::clock::{Clock as _, SystemClock};
use antumbra_service::notifications::suspension::{Suspension, SuspensionState, Suspensions as _};
use antumbra_service::shadows::Layout;
use antumbra_shadow::Timestamp;
use serde_json::{Value, json};

use super::Scenario;
use crate::support::eventually;

impl Scenario {
    pub(super) async fn run_shadows(&mut self) {
        self.shadows_over_http().await;
        self.kept_answers().await;
        self.large_entries().await;
        self.shadows_over_mqtt().await;
        // Each kind of target has a registration for these.
        let teller = json!({"led": 1});
        self.call_api("PATCH", "/v1/shadows/{}/reported", &["teller"], teller, 200)
            .await;
        self.next_message("changes/teller").await;
        self.home.received("changes", "changes-0").await;
        self.home.received("changes.fifo", "changes-1").await;
        self.suspended_targets().await;
    }

    /// One target is suspended, another one drains; in the end both get their notifications directly.
    async fn suspended_targets(&mut self) {
        let suspensions = DynamoDbSuspensions::new(self.database.clone(), MAIN.name);
        for (registration, state) in [
            ("changes-0", SuspensionState::Suspended),
            ("changes-1", SuspensionState::Draining),
        ] {
            let long_ago = Timestamp::from_nanoseconds(0);
            let mut record = Suspension::after_failure(None, registration, long_ago);
            record.state = state;
            assert!(suspensions.save(&record).await.unwrap());
        }
        let teller = json!({"led": 2});
        self.call_api("PATCH", "/v1/shadows/{}/reported", &["teller"], teller, 200)
            .await;
        self.home.received("changes", "changes-0").await;
        self.home.received("changes.fifo", "changes-1").await;
        let none_left = async || suspensions.all().await.unwrap().is_empty().then_some(());
        eventually("the end of the suspensions", none_left).await;
    }

    async fn shadows_over_http(&self) {
        self.get("/v1/openapi.json", &[]).await;
        self.get("/v1/shadows", &[]).await;
        let reports = json!({"reports": [{"id": "fan", "reported": {"a": 1}}]});
        self.call_api("POST", "/v1/reports", &[], reports, 200)
            .await;
        let (lamp, named) = (&["lamp"][..], &["lamp", "light"][..]);
        for (prefix, parts) in [("/v1/shadows/{}", lamp), ("/v1/shadows/{}/name/{}", named)] {
            let path = |rest: &str| format!("{prefix}{rest}");
            let at = |second: u32| json!({"led": {"value": second, "timestamp": second}});
            let (reported, desired) = (path("/reported"), path("/desired"));
            // Created, changed, desired, and a report that acknowledges the desired value.
            self.call_api("PATCH", &reported, parts, at(1), 200).await;
            self.call_api("PATCH", &reported, parts, at(2), 200).await;
            self.call_api("PATCH", &desired, parts, json!({"led": {"value": 3}}), 200)
                .await;
            self.call_api("PATCH", &reported, parts, at(3), 200).await;
            let both = json!({"reported": {"fan": 1}, "desired": {"fan": 2}});
            self.call_api("PATCH", prefix, parts, both, 200).await;
            self.get(&path("/delta"), parts).await;
            self.get(prefix, parts).await;
            let before = "2020-01-01T00:00:00Z";
            let past = format!("{prefix}?at={before}");
            self.call_api("GET", &past, parts, Value::Null, 410).await;
            // The state of today, at a time in the past.
            let since = format!("{prefix}?at={}", SystemClock.now());
            self.get(&since, parts).await;
            self.get(&path("/history"), parts).await;
            self.get(
                &path("/diff?from=2100-01-01T00:00:00Z&to=2100-01-02T00:00:00Z"),
                parts,
            )
            .await;
            let one_of_two = match self.layout {
                Layout::Separate => 204,
                Layout::Combined => 400,
            };
            for document in [&reported, &desired] {
                self.call_api("DELETE", document, parts, Value::Null, one_of_two)
                    .await;
            }
            self.call_api("DELETE", prefix, parts, Value::Null, 204)
                .await;
        }
    }

    /// A change whose entry is larger than an item.
    async fn large_entries(&self) {
        let mut random = fastrand::Rng::with_seed(7);
        let mut text = |bytes| -> String { (0..bytes).map(|_| random.alphanumeric()).collect() };
        let path = "/v1/shadows/{}/reported";
        for document in [
            json!({"a": text(150_000), "b": text(230_000)}),
            json!({"a": text(150_000)}),
        ] {
            self.call_api("PATCH", path, &["vast"], document, 200).await;
        }
        let history = "/v1/shadows/vast/history?limit=1";
        self.until(history, |page| page["entries"][0]["version"] == 2)
            .await;
        let feed = "/v1/changes?cursor=oldest&prefix=vast";
        self.until(feed, |page| !page["changes"].as_array().unwrap().is_empty())
            .await;
        self.get("/v1/changes?cursor=now", &[]).await;
        let purge = "/v1/shadows/{}?purge=true";
        self.call_api("DELETE", purge, &["vast"], Value::Null, 204)
            .await;
        self.home.stack.sweep().await.unwrap();
        let large = |entry: &Value| entry["operation"] != "remove";
        self.until(history, |page| {
            !page["entries"].as_array().unwrap().iter().any(large)
        })
        .await;
    }

    /// Repeated requests with short and long responses, stored and not stored.
    async fn kept_answers(&self) {
        let long: serde_json::Map<_, _> = (0..9)
            .map(|n| (format!("m{n}"), json!("x".repeat(37_000))))
            .collect();
        for (key, path, body, status) in [
            ("short", "/v1/shadows/kept/reported", json!({"a": 1}), 200),
            ("long", "/v1/shadows/kept/reported", json!(long), 200),
            ("none", "/v1/shadows/kept/reported", json!([]), 400),
        ] {
            for _ in 0..2 {
                let headers = [("idempotency-key", key)];
                self.request("PATCH", path, &headers, body.clone(), status)
                    .await;
            }
        }
        // The record of a request that failed with 5xx is deleted, so that it can be repeated.
        let api = antumbra_http_api::NAME;
        self.recorder.break_off(Some((api, "BatchGetItem")));
        let headers = [("idempotency-key", "again")];
        let path = "/v1/shadows/kept/reported";
        self.request("PATCH", path, &headers, json!({"a": 2}), 503)
            .await;
        self.recorder.break_off(None);
        self.request("PATCH", path, &headers, json!({"a": 2}), 200)
            .await;
    }

    async fn shadows_over_mqtt(&mut self) {
        for prefix in ["shadow/thing", "shadow/thing/name/light"] {
            let topic = |rest: &str| format!("{prefix}/{rest}");
            let state = |state: Value| json!({ "state": state });
            let (update, accepted) = (topic("update"), topic("update/accepted"));
            for part in [
                json!({"reported": {"led": 1}}),
                json!({"reported": {"led": 2}}),
                json!({"desired": {"led": 3}}),
                json!({"reported": {"led": 3, "a": 1}, "desired": {"led": 3, "a": 2}}),
                json!({"desired": null}),
            ] {
                self.publish(&update, state(part), &accepted).await;
            }
            let get = topic("get");
            let got = self.publish(&get, json!({}), &topic("get/accepted")).await;
            // One document is written, and the other must be unchanged.
            let held = json!({"state": {"reported": {"led": 4}}, "version": got["version"]});
            self.publish(&update, held, &accepted).await;
            let delete = topic("delete");
            self.publish(&delete, json!({}), &topic("delete/accepted"))
                .await;
            self.publish(&get, json!({}), &topic("get/rejected")).await;
        }
    }
}
