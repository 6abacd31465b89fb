//! SQS: the calls that the product makes of it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::Cloud;
use crate::queue::Incoming;

/// Prefix of queue URLs.
pub(crate) const URL: &str = "http://cloud/000000000000/";

pub(super) fn failure(status: u16, code: &str) -> (u16, String) {
    let kind = format!("com.amazonaws.sqs#{code}");
    let body = json!({"__type": kind, "message": "as the seed says"});
    (status, body.to_string())
}

impl Cloud {
    /// Serves a request; `keep` says of each entry of a batch whether it is taken.
    pub(super) fn sqs(
        &self,
        operation: &str,
        body: &str,
        keep: &mut dyn FnMut() -> bool,
    ) -> (u16, String) {
        let request: Value = serde_json::from_str(body).unwrap_or_default();
        let now = self.0.clock.milliseconds();
        let text = |name: &str| request[name].as_str().unwrap_or_default();
        let name = match operation {
            "GetQueueUrl" => text("QueueName"),
            _ => text("QueueUrl").rsplit('/').next().unwrap_or_default(),
        };
        let mut queues = self.queues();
        let Some(queue) = queues.get_mut(name) else {
            return failure(400, "QueueDoesNotExist");
        };
        let answer = match operation {
            "GetQueueUrl" => json!({"QueueUrl": format!("{URL}{name}")}),
            "SendMessageBatch" => {
                let (mut taken, mut failed) = (Vec::new(), Vec::new());
                for entry in request["Entries"].as_array().into_iter().flatten() {
                    let id = &entry["Id"];
                    if keep() {
                        let message = queue.send(incoming(entry), now);
                        taken.push(json!({"Id": id, "MessageId": message, "MD5OfMessageBody": ""}));
                    } else {
                        let code = "InternalError";
                        failed.push(json!({"Id": id, "SenderFault": false, "Code": code}));
                    }
                }
                json!({"Successful": taken, "Failed": failed})
            }
            "ChangeMessageVisibility" => {
                let seconds = request["VisibilityTimeout"].as_u64().unwrap_or_default();
                if !queue.hide(text("ReceiptHandle"), Duration::from_secs(seconds), now) {
                    return failure(400, "ReceiptHandleIsInvalid");
                }
                json!({})
            }
            other => return failure(400, other),
        };
        drop(queues);
        self.touch();
        (200, answer.to_string())
    }
}

fn incoming(entry: &Value) -> Incoming {
    let text = |name: &str| entry[name].as_str().map(str::to_owned);
    let attributes = entry["MessageAttributes"].as_object();
    let attributes: BTreeMap<String, String> = attributes
        .into_iter()
        .flatten()
        .filter_map(|(name, value)| Some((name.clone(), value["StringValue"].as_str()?.to_owned())))
        .collect();
    Incoming {
        body: text("MessageBody").unwrap_or_default(),
        group: text("MessageGroupId"),
        deduplication: text("MessageDeduplicationId"),
        attributes,
        delay: Duration::from_secs(entry["DelaySeconds"].as_u64().unwrap_or_default()),
    }
}
