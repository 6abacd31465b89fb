//! The SQS API over its JSON protocol: a POST with the operation in `x-amz-target`.

mod batch;
mod checksums;
mod messages;
mod queues;

use bytes::Bytes;
use http::Response;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::error::ApiError;
use crate::service::{Queues, State};
use messages::{OnQueue, delete_one, send_one, set_visibility};

/// Prefix of the header `x-amz-target`.
pub const TARGET: &str = "AmazonSQS.";

#[derive(Serialize)]
struct Empty {}

impl Queues {
    /// Serves one request of the JSON protocol.
    pub async fn sqs(&self, operation: &str, body: &[u8]) -> Response<Bytes> {
        let mut response = Response::builder()
            .header("content-type", "application/x-amz-json-1.0")
            .header("x-amzn-requestid", uuid::Uuid::new_v4().to_string());
        let body = match self.call(operation, body).await {
            Ok(body) => body,
            Err(error) => {
                let side = if error.sender { "Sender" } else { "Receiver" };
                response = response
                    .status(error.status())
                    .header("x-amzn-query-error", format!("{};{side}", error.query_code));
                json!({
                    "__type": format!("com.amazonaws.sqs#{}", error.code),
                    "message": error.message,
                })
            }
        };
        // All codes are valid headers.
        response.body(body.to_string().into()).unwrap_or_default()
    }

    async fn call(&self, operation: &str, body: &[u8]) -> Result<Value, ApiError> {
        match operation {
            "CreateQueue" => respond(self.create_queue(read(body)?)),
            "DeleteQueue" => respond(self.delete_queue(&read(body)?)),
            "GetQueueUrl" => respond(self.get_queue_url(&read(body)?)),
            "ListQueues" => respond(Ok(self.list_queues(&read(body)?))),
            "GetQueueAttributes" => respond(self.get_attributes(&read(body)?)),
            "SetQueueAttributes" => respond(self.set_attributes(&read(body)?)),
            "PurgeQueue" => respond(self.purge_queue(&read(body)?)),
            "TagQueue" | "UntagQueue" => respond(self.tag_queue(read(body)?)),
            "ListQueueTags" => respond(self.list_tags(&read(body)?)),
            "ListDeadLetterSourceQueues" => respond(self.list_sources(&read(body)?)),
            "StartMessageMoveTask" => respond(self.start_move(&read(body)?)),
            "ListMessageMoveTasks" => Ok(json!({ "Results": [] })),
            "SendMessage" => self.one(body, send_one),
            "SendMessageBatch" => respond(self.send_batch(read(body)?)),
            "ReceiveMessage" => respond(self.receive_messages(read(body)?).await),
            "DeleteMessage" => self.one(body, delete_one),
            "DeleteMessageBatch" => respond(self.serve_each(read(body)?, delete_one)),
            "ChangeMessageVisibility" => self.one(body, set_visibility),
            "ChangeMessageVisibilityBatch" => respond(self.serve_each(read(body)?, set_visibility)),
            other => {
                let text = format!("the local SQS does not support {other}");
                Err(ApiError::new("UnsupportedOperation", text))
            }
        }
    }

    /// Serves the message of a request.
    fn one<T: DeserializeOwned, R: Serialize>(
        &self,
        body: &[u8],
        serve: impl FnOnce(&mut State, &str, T) -> Result<R, ApiError>,
    ) -> Result<Value, ApiError> {
        let request: OnQueue<T> = read(body)?;
        let queue = queue_name(&request.queue_url)?;
        respond(serve(&mut self.lock(), queue, request.fields))
    }
}

fn respond<T: Serialize>(result: Result<T, ApiError>) -> Result<Value, ApiError> {
    serde_json::to_value(result?)
        .map_err(|error| ApiError::new("InternalFailure", error.to_string()))
}

pub(crate) fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    let body = if body.is_empty() { b"{}" } else { body };
    serde_json::from_slice(body)
        .map_err(|error| ApiError::new("SerializationException", error.to_string()))
}

/// The name at the end of a queue URL.
fn queue_name(url: &str) -> Result<&str, ApiError> {
    match url.rsplit('/').next() {
        Some(name) if !name.is_empty() => Ok(name),
        _ => Err(ApiError::no_queue()),
    }
}

fn within(name: &str, value: Option<u64>, max: u64) -> Result<(), ApiError> {
    match value {
        Some(value) if value > max => Err(ApiError::invalid(format!(
            "Value {value} for parameter {name} is invalid. Reason: Must be >= 0 and <= {max}, if provided."
        ))),
        _ => Ok(()),
    }
}
