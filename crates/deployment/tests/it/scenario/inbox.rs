//! Valid and invalid messages, and every inbox operation.

use serde_json::{Value, json};

use super::Scenario;

impl Scenario {
    pub(super) async fn run_inbox(&mut self) {
        for epoch in 1..=3 {
            let message = json!({"thingName": "sender", "epochTime": epoch});
            self.home
                .send("antumbra-inbound", &message.to_string())
                .await;
            self.next_message("notification/sender").await;
        }
        self.home.send("antumbra-inbound", "gibberish").await;
        self.home.received("antumbra-quarantine", "gibberish").await;

        let request = json!({"token": "t"});
        let query = "request/query/sender";
        let found = self
            .publish(query, request.clone(), "response/query/t")
            .await;
        let oldest = found["oldestMessageId"].as_str().unwrap().to_owned();
        for operation in ["get", "next", "prev", "delete"] {
            let topic = format!("request/{operation}/sender/{oldest}");
            let response = format!("response/{operation}/t");
            self.publish(&topic, request.clone(), &response).await;
        }
        let whole = json!({"token": "t", "bodies": true});
        for payload in [request.clone(), whole] {
            self.publish("request/list/sender", payload, "response/list/t")
                .await;
        }
        let devices = self
            .publish("request/devices", request, "response/devices/t")
            .await;
        assert_eq!(devices["devices"].as_array().map(Vec::len), Some(1));
        let message = json!({"token": "t", "message": {"led": "on"}});
        self.publish("request/send/sender", message, "response/send/t")
            .await;

        let sources = self.get("/v1/messages", &[]).await;
        assert_eq!(sources["sources"][0]["uuid"], "sender", "{sources}");
        let list = "/v1/messages/{}";
        let found = self.get(list, &["sender"]).await;
        assert_eq!(found["messages"].as_array().map(Vec::len), Some(2));
        let whole = "/v1/messages/{}?bodies=true";
        self.get(whole, &["sender"]).await;
        let id = found["messages"][0]["messageId"].as_str().unwrap();
        for (method, status) in [("GET", 200), ("DELETE", 204)] {
            let path = "/v1/messages/{}/{}";
            self.call_api(method, path, &["sender", id], Value::Null, status)
                .await;
        }
    }
}
