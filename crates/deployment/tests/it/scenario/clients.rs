//! Clients, links, and deliveries that succeed, fail, become dead letters and are redelivered.

use std::time::Duration;

use serde_json::{Value, json};

use super::Scenario;
use crate::calls::Call;
use crate::endpoint::Reply;
use crate::support::eventually;

impl Scenario {
    pub(super) async fn run_clients(&mut self) {
        for (id, mode) in [("newest", "latest"), ("all", "every")] {
            let url = self.endpoints.url(id);
            let new = json!({"id": id, "name": id, "url": url, "mode": mode});
            self.call_api("POST", "/v1/clients", &[], new, 201).await;
            let client = &[id][..];
            let change = json!({"name": "Another"});
            self.call_api("PATCH", "/v1/clients/{}", client, change, 200)
                .await;
            self.get("/v1/clients/{}", client).await;
            self.call_api(
                "POST",
                "/v1/clients/{}/rotate-secret",
                client,
                Value::Null,
                200,
            )
            .await;
            let link = "/v1/clients/{}/sensors/{}";
            self.call_api("PUT", link, &[id, "door"], Value::Null, 204)
                .await;
            self.call_api("POST", "/v1/clients/{}/test", client, Value::Null, 202)
                .await;
            self.endpoints.wait(id, 1).await;
        }
        self.kept_secrets().await;
        self.get("/v1/clients", &[]).await;
        for path in ["/v1/clients/{}/sensors", "/v1/clients/{}/deliveries"] {
            self.get(path, &["newest"]).await;
        }
        for path in ["/v1/sensors/{}/clients", "/v1/sensors/{}/deliveries"] {
            self.get(path, &["door"]).await;
        }

        // Both get deliveries; each endpoint fails first.
        for id in ["newest", "all"] {
            self.endpoints.next(id, &[Reply::Status(500)]);
        }
        self.signal(7).await;
        for id in ["newest", "all"] {
            // Earlier changes may still be delivered to clients that were linked since.
            let seven = |delivery: &&Value| delivery["data"]["current"] == 7;
            let path = format!("/v1/clients/{id}/deliveries?status=delivered");
            let of = |page: &Value| page["deliveries"].as_array().unwrap().clone();
            let page = self
                .until(&path, |page| of(page).iter().any(|one| seven(&one)))
                .await;
            let deliveries = of(&page);
            let delivery = deliveries.iter().find(seven).unwrap()["id"]
                .as_str()
                .unwrap();
            let again = "/v1/deliveries/{}/redeliver";
            let seen = self.endpoints.seen(id).len();
            self.call_api("POST", again, &[delivery], Value::Null, 202)
                .await;
            self.endpoints.wait(id, seen + 1).await;
        }

        for id in ["newest", "all"] {
            let since = "/v1/clients/{}/redeliver?since=2026-01-01T00:00:00Z&delivered=true";
            let seen = self.endpoints.seen(id).len();
            self.call_api("POST", since, &[id], Value::Null, 202).await;
            self.endpoints.wait(id, seen + 2).await;
        }

        self.repeated_messages().await;
        self.deliveries_outside_of_the_queue().await;
        // 410 disables the clients: their deliveries are held until they are enabled.
        for id in ["newest", "all"] {
            self.endpoints.next(id, &[Reply::Status(410)]);
        }
        self.signal(8).await;
        for id in ["newest", "all"] {
            let path = format!("/v1/clients/{id}");
            self.until(&path, |client| client["enabled"] == false).await;
        }
        self.signal(9).await;
        for id in ["newest", "all"] {
            self.until_count(id, "held", |held| held >= 2).await;
            self.call_api("POST", "/v1/clients/{}/disable", &[id], Value::Null, 200)
                .await;
            // The second call finds the client enabled.
            for _ in 0..2 {
                self.call_api("POST", "/v1/clients/{}/enable", &[id], Value::Null, 200)
                    .await;
            }
        }
        self.until_count("all", "held", |held| held == 0).await;
        self.until_count("all", "pending", |pending| pending == 0)
            .await;
        self.end_of_clients().await;
    }

    /// Messages that come again while the attempt of their delivery is in progress: they are hidden until it must have ended.
    async fn repeated_messages(&self) {
        let queues = [
            ("newest", "antumbra-deliveries"),
            ("all", "antumbra-deliveries.fifo"),
        ];
        for (id, _) in queues {
            self.until_count(id, "pending", |pending| pending == 0)
                .await;
            self.endpoints.next(id, &[Reply::Slow(3000)]);
        }
        let seen = queues.map(|(id, _)| self.endpoints.seen(id).len());
        self.signal(20).await;
        for ((id, queue), seen) in queues.into_iter().zip(seen) {
            let requests = self.endpoints.wait(id, seen + 1).await;
            let body = &requests[seen].body;
            let copy = json!({"id": body["id"], "sensor": body["sensor"]["id"]});
            let call = self.home.sqs.send_message().message_body(copy.to_string());
            let call = call
                .queue_url(self.home.stack.queue_url(queue))
                .message_group_id("copies");
            let deduplication = queue.ends_with(".fifo").then(|| "copy".to_owned());
            let call = call.set_message_deduplication_id(deduplication);
            call.send().await.unwrap();
        }
        eventually("hidden copies", async || {
            let calls = self.recorder.calls();
            let hides = |call: &&Call| call.operation == "ChangeMessageVisibility";
            (calls.iter().filter(hides).count() >= 2).then_some(())
        })
        .await;
    }

    /// Deliveries that become dead letters, wait in the due index, or are forged.
    async fn deliveries_outside_of_the_queue(&self) {
        for id in ["newest", "all"] {
            self.until_count(id, "pending", |pending| pending == 0)
                .await;
            self.endpoints.next(id, &[Reply::Status(500); 10]);
        }
        self.signal(10).await;
        for id in ["newest", "all"] {
            self.until_count(id, "dead", |dead| dead > 0).await;
            self.endpoints.next(id, &[Reply::RetryAfter(503, 100)]);
        }
        self.signal(11).await;
        for id in ["newest", "all"] {
            self.until_count(id, "failed", |failed| failed > 0).await;
        }
        self.signal(12).await;
        eventually("a delivery behind another one", async || {
            let deferred = self.items("CLIENT#all", "DEFERRED#").await;
            (deferred.len() == 2).then_some(())
        })
        .await;
        self.clock.shift(Duration::from_secs(120));
        self.home.stack.sweep().await.unwrap();
        for id in ["newest", "all"] {
            self.until_count(id, "failed", |failed| failed == 0).await;
            self.until_count(id, "pending", |pending| pending == 0)
                .await;
        }
        self.home.send("antumbra-deliveries", "forged").await;
        self.home.received("antumbra-quarantine", "forged").await;
    }

    /// Waits until the number of a client's deliveries with a status is as expected.
    async fn until_count(&self, client: &str, status: &str, is_so: impl Fn(usize) -> bool) {
        let path = format!("/v1/clients/{client}/deliveries?status={status}");
        let count = |page: &Value| page["deliveries"].as_array().map_or(0, Vec::len);
        self.until(&path, |page| is_so(count(page))).await;
    }

    /// Repeats requests whose response has a secret.
    async fn kept_secrets(&self) {
        let url = self.endpoints.url("kept");
        let new = json!({"id": "kept", "name": "Kept", "url": url});
        for (path, body, status) in [
            ("/v1/clients", new, 201),
            ("/v1/clients/kept/rotate-secret", Value::Null, 200),
        ] {
            for _ in 0..2 {
                let headers = [("idempotency-key", path)];
                self.request("POST", path, &headers, body.clone(), status)
                    .await;
            }
        }
    }

    /// Changes the mode of a linked client, deletes it, and creates it again although the delete was interrupted.
    async fn recreated_client(&self) {
        let (client, link) = ("/v1/clients/{}", "/v1/clients/{}/sensors/{}");
        self.call_api("PUT", link, &["kept", "door"], Value::Null, 204)
            .await;
        for mode in ["every", "latest"] {
            let change = json!({ "mode": mode });
            self.call_api("PATCH", client, &["kept"], change, 200).await;
        }
        let mut secrets = self.items("CLIENT#kept", "CLIENTSECRETS").await;
        assert_eq!(secrets.len(), 1);
        // An interrupted delete leaves the item without its secrets.
        secrets[0].retain(|name, _| ["PK", "SK"].contains(&&name[..]));
        let whole = "/v1/clients/{}?cascade=true";
        self.call_api("DELETE", whole, &["kept"], Value::Null, 204)
            .await;
        self.put_back(secrets).await;
        let new = json!({"id": "kept", "name": "Kept", "url": self.endpoints.url("kept")});
        self.call_api("POST", "/v1/clients", &[], new, 201).await;
    }

    async fn end_of_clients(&mut self) {
        self.recreated_client().await;
        let link = "/v1/clients/{}/sensors/{}";
        self.call_api("DELETE", link, &["newest", "door"], Value::Null, 204)
            .await;
        self.call_api("DELETE", "/v1/clients/{}", &["newest"], Value::Null, 204)
            .await;
        self.end_of_sensor().await;
        let whole = "/v1/clients/{}?cascade=true";
        self.call_api("DELETE", whole, &["all"], Value::Null, 204)
            .await;
        self.get("/health", &[]).await;
    }
}
