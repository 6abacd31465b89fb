//! A server in place of SQS, AWS IoT and webhook endpoints.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::http::{Request, serve};

/// Accepts and records every request. Reports every entry of a batch for SQS as sent.
pub struct AwsServer {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl AwsServer {
    pub fn start() -> AwsServer {
        AwsServer::responding(|_| None)
    }

    /// Responds with the script's JSON where it returns one.
    pub fn responding(
        script: impl Fn(&Request) -> Option<Value> + Send + Sync + 'static,
    ) -> AwsServer {
        let requests: Arc<Mutex<Vec<Request>>> = Arc::default();
        let recorded = Arc::clone(&requests);
        let address = serve(move |request| {
            recorded.lock().unwrap().push(request.clone());
            let response = script(request).unwrap_or_else(|| accept(request));
            let headers = "content-type: application/x-amz-json-1.0\r\n".to_owned();
            (headers, response.to_string())
        });
        AwsServer { address, requests }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn queue_url(&self, queue: &str) -> String {
        format!("http://{}/000000000000/{queue}", self.address)
    }

    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// Returns the entries of all batches sent to SQS.
    pub fn sent(&self) -> Vec<Value> {
        let requests = self.requests.lock().unwrap();
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
