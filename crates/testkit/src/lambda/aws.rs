//! A server in place of SQS, AWS IoT and webhook endpoints.

use serde_json::{Value, json};

use crate::http::{Endpoint, Request, Response};

/// Accepts and records every request. Reports every entry of a batch for SQS as sent.
pub struct AwsServer(Endpoint);

impl AwsServer {
    pub fn start() -> AwsServer {
        AwsServer::responding(|_| None)
    }

    /// Responds with the script's JSON where it returns one.
    pub fn responding(
        script: impl Fn(&Request) -> Option<Value> + Send + Sync + 'static,
    ) -> AwsServer {
        AwsServer(Endpoint::start(move |request| {
            let response = script(request).unwrap_or_else(|| accept(request));
            Response::ok(response).with_header("content-type", "application/x-amz-json-1.0")
        }))
    }

    pub fn address(&self) -> std::net::SocketAddr {
        self.0.address
    }

    pub fn url(&self) -> String {
        self.0.url()
    }

    pub fn queue_url(&self, queue: &str) -> String {
        format!("{}/000000000000/{queue}", self.url())
    }

    pub fn requests(&self) -> Vec<Request> {
        self.0.requests()
    }

    /// Returns the entries of all batches sent to SQS.
    pub fn sent(&self) -> Vec<Value> {
        let requests = self.requests();
        let batches = requests.iter().filter(|r| r.operation() == SEND_BATCH);
        batches.flat_map(|batch| entries(&batch.json())).collect()
    }
}

const SEND_BATCH: &str = "SendMessageBatch";

fn entries(batch: &Value) -> Vec<Value> {
    batch["Entries"].as_array().cloned().unwrap_or_default()
}

fn accept(request: &Request) -> Value {
    if request.operation() != SEND_BATCH {
        return json!({});
    }
    let sent = |entry: Value| json!({"Id": entry["Id"], "MessageId": "m", "MD5OfMessageBody": "x"});
    let sent: Vec<Value> = entries(&request.json()).into_iter().map(sent).collect();
    json!({"Successful": sent, "Failed": []})
}
