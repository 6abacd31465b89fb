//! Shadows through every door, in each way that they are written.

use serde_json::{Value, json};

use super::Play;

impl Play {
    pub(super) async fn play_shadows(&mut self) {
        self.shadows_over_http().await;
        self.kept_answers().await;
        self.shadows_over_mqtt().await;
        // Somebody registered for these, by each kind of target.
        let teller = json!({"led": 1});
        self.ask("PATCH", "/v1/shadows/{}/reported", &["teller"], teller)
            .await
            .is(200);
        self.hear("told/teller").await;
        self.received("told", "told-0").await;
        self.received("told.fifo", "told-1").await;
    }

    async fn shadows_over_http(&self) {
        let (lamp, named) = (&["lamp"][..], &["lamp", "light"][..]);
        for (prefix, parts) in [("/v1/shadows/{}", lamp), ("/v1/shadows/{}/{}", named)] {
            let path = |rest: &str| format!("{prefix}{rest}");
            let at = |second: u32| json!({"led": {"value": second, "timestamp": second}});
            let (reported, desired) = (path("/reported"), path("/desired"));
            // New, changed, wished for, and a report that fulfils the wish.
            self.ask("PATCH", &reported, parts, at(1)).await.is(200);
            self.ask("PATCH", &reported, parts, at(2)).await.is(200);
            self.ask("PATCH", &desired, parts, json!({"led": {"value": 3}}))
                .await
                .is(200);
            self.ask("PATCH", &reported, parts, at(3)).await.is(200);
            self.ask("GET", &path("/delta"), parts, Value::Null)
                .await
                .is(200);
            self.ask("GET", prefix, parts, Value::Null).await.is(200);
            self.ask("DELETE", prefix, parts, Value::Null).await.is(204);
        }
    }

    /// Requests that may be sent again, with answers short and long, kept and given up.
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
                let answer = self.request("PATCH", path, &headers, body.clone()).await;
                answer.is(status);
            }
        }
        // One that failed by our fault is forgotten, so that it can be asked for again.
        let api = antumbra_http_api::NAME;
        self.recorder.break_off(Some((api, "BatchGetItem")));
        let headers = [("idempotency-key", "again")];
        let path = "/v1/shadows/kept/reported";
        let failed = self.request("PATCH", path, &headers, json!({"a": 2}));
        failed.await.is(503);
        self.recorder.break_off(None);
        let again = self.request("PATCH", path, &headers, json!({"a": 2}));
        again.await.is(200);
    }

    async fn shadows_over_mqtt(&mut self) {
        for prefix in ["shadow/thing", "shadow/thing/name/light"] {
            let topic = |rest: &str| format!("{prefix}/{rest}");
            let state = |state: Value| json!({ "state": state });
            let (update, accepted) = (topic("update"), topic("update/accepted"));
            for asked in [
                json!({"reported": {"led": 1}}),
                json!({"reported": {"led": 2}}),
                json!({"desired": {"led": 3}}),
                json!({"reported": {"led": 3, "a": 1}, "desired": {"led": 3, "a": 2}}),
                json!({"desired": null}),
            ] {
                self.publish(&update, state(asked), &accepted).await;
            }
            let get = topic("get");
            let got = self.publish(&get, json!({}), &topic("get/accepted")).await;
            // One document is written, and the other held to what was read.
            let held = json!({"state": {"reported": {"led": 4}}, "version": got["version"]});
            self.publish(&update, held, &accepted).await;
            let delete = topic("delete");
            self.publish(&delete, json!({}), &topic("delete/accepted"))
                .await;
            self.publish(&get, json!({}), &topic("get/rejected")).await;
        }
    }
}
