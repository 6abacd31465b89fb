//! Registrations, messages to devices, and failed messages that are shown and redriven.

use serde_json::{Value, json};

use super::Scenario;
use crate::support::eventually;

impl Scenario {
    pub(super) async fn run_queues(&mut self) {
        self.get("/v1/registrations", &[]).await;
        self.call_api("GET", "/v1/registrations/{}", &["x"], Value::Null, 404)
            .await;
        let message = json!({"message": {"led": "on"}});
        self.call_api("POST", "/v1/messages/{}", &["sender"], message, 202)
            .await;
        self.get("/v1/queues", &[]).await;

        let range = self.range().await;
        for queue in ["antumbra-undeliverable", "antumbra-quarantine"] {
            self.home.send(queue, &range).await;
        }
        self.home.send("antumbra-deliveries-dead", "?").await;
        let url = self.home.stack.queue_url("antumbra-deliveries-dead.fifo");
        let call = self
            .home
            .sqs
            .send_message()
            .queue_url(url)
            .message_body("?");
        let call = call.message_group_id("g").message_deduplication_id("d");
        call.send().await.unwrap();
        // A message that no function can read goes back to the queue that its sender used.
        self.home.send("antumbra-inbound", "nothing").await;
        self.until("/v1/queues/quarantine", |shown| {
            let messages = shown["messages"].as_array().unwrap();
            messages.iter().any(|one| one["body"] == "nothing")
        })
        .await;
        for queue in ["undeliverable", "quarantine", "dead-letters"] {
            let shown = self.get("/v1/queues/{}", &[queue]).await;
            let count = shown["messages"].as_array().map(Vec::len).unwrap();
            assert!(count > 0, "{queue} is empty");
            let redrive = "/v1/queues/{}/redrive?to=signals";
            let done = self
                .call_api("POST", redrive, &[queue], Value::Null, 200)
                .await;
            let results = done["results"].as_array().unwrap();
            let moved = results.iter().any(|one| one["outcome"] == "moved");
            assert!(moved, "{queue}: {done}");
        }
        // The listener has read the records again.
        let recorder = self.recorder.clone();
        eventually("the records", async || {
            let calls = recorder.calls();
            let mut calls = calls.iter();
            calls.find(|call| call.operation == "GetRecords").map(drop)
        })
        .await;
    }

    /// The message of an event source that gave up the first record of the table's stream.
    async fn range(&self) -> String {
        let streams = aws_sdk_dynamodbstreams::Client::new(&self.home.database());
        let found = streams.list_streams().table_name("antumbra").send().await;
        let stream = found.unwrap().streams()[0].stream_arn().unwrap().to_owned();
        let described = streams.describe_stream().stream_arn(&stream).send().await;
        let described = described.unwrap().stream_description.unwrap();
        let shard = &described.shards()[0];
        let first = shard.sequence_number_range().unwrap();
        let first = first.starting_sequence_number().unwrap();
        json!({
            "requestContext": {"condition": "RetryAttemptsExhausted"},
            "DDBStreamBatchInfo": {
                "shardId": shard.shard_id(), "startSequenceNumber": first, "endSequenceNumber": first,
                "batchSize": 1, "streamArn": stream,
            },
        })
        .to_string()
    }
}
