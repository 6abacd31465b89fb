//! Valid and invalid messages, and every inbox operation.

use serde_json::{Value, json};

use super::Scenario;

impl Scenario {
    pub(super) async fn run_inbox(&mut self) {
        for epoch in 1..=3 {
            let message = json!({"thingName": "sender", "epochTime": epoch});
            self.send("antumbra-inbound", &message.to_string()).await;
            self.next_message("notification/sender").await;
        }
        self.send("antumbra-inbound", "gibberish").await;
        self.received("antumbra-quarantine", "gibberish").await;

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

        let list = "/v1/messages/{}";
        let found = self.call_api("GET", list, &["sender"], Value::Null).await;
        let found = found.is(200);
        assert_eq!(found["messages"].as_array().map(Vec::len), Some(2));
        let whole = "/v1/messages/{}?bodies=true";
        self.call_api("GET", whole, &["sender"], Value::Null)
            .await
            .is(200);
        let id = found["messages"][0]["messageId"].as_str().unwrap();
        for (method, status) in [("GET", 200), ("DELETE", 204)] {
            let path = "/v1/messages/{}/{}";
            let answer = self
                .call_api(method, path, &["sender", id], Value::Null)
                .await;
            answer.is(status);
        }
    }
}
