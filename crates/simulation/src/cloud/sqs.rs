//! SQS: the calls that the product makes.

use std::time::Duration;

use antumbra_queues::queue::{AttributeValue, Message, NewMessage, Queue, Receipt};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Cloud, lock};

/// Longest delay of a message that is delivered late.
const LATE: Duration = Duration::from_secs(20);

/// Prefix of queue URLs.
pub(crate) const URL: &str = "http://cloud/000000000000/";

pub(super) fn failure(status: u16, code: &str) -> (u16, String) {
    let kind = format!("com.amazonaws.sqs#{code}");
    let body = json!({"__type": kind, "message": "as the seed says"});
    (status, body.to_string())
}

pub(crate) fn receipt_handle(message: &Message) -> String {
    format!("{}:{}", message.number, message.receives)
}

fn receipt(handle: &str) -> Option<Receipt> {
    let (number, receive) = handle.split_once(':')?;
    Some(Receipt {
        number: number.parse().ok()?,
        receive: receive.parse().ok()?,
    })
}

impl Cloud {
    /// Puts a message into a queue; returns its id, which no other queue has.
    pub(super) fn put(&self, queue: &mut Queue, message: NewMessage) -> String {
        let id = format!("{}-{}", queue.name().replace('.', "-"), queue.next_number());
        let sent = queue.send(id, message, self.0.clock.milliseconds());
        let often = lock(&self.0.faults).late_messages;
        if !queue.is_fifo() && !sent.duplicate && self.0.chance.happens(often) {
            let late = self.0.chance.within(LATE);
            queue.delay(sent.number, late.as_millis() as u64);
        }
        sent.id
    }

    /// Serves a request; `keep` decides for each entry of a batch whether it is accepted.
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
        let response = match operation {
            "GetQueueUrl" => json!({"QueueUrl": format!("{URL}{name}")}),
            "SendMessageBatch" => {
                let (mut successful, mut failed) = (Vec::new(), Vec::new());
                for entry in request["Entries"].as_array().into_iter().flatten() {
                    let id = &entry["Id"];
                    let message = Entry::deserialize(entry).ok().filter(|_| keep());
                    if let Some(message) = message {
                        let message = self.put(queue, message.into());
                        successful
                            .push(json!({"Id": id, "MessageId": message, "MD5OfMessageBody": ""}));
                    } else {
                        let code = "InternalError";
                        failed.push(json!({"Id": id, "SenderFault": false, "Code": code}));
                    }
                }
                json!({"Successful": successful, "Failed": failed})
            }
            "ChangeMessageVisibility" => {
                let seconds = request["VisibilityTimeout"].as_u64().unwrap_or_default();
                let changed = receipt(text("ReceiptHandle"))
                    .is_some_and(|receipt| queue.change_visibility(receipt, seconds, now));
                if !changed {
                    return failure(400, "MessageNotInflight");
                }
                json!({})
            }
            other => return failure(400, other),
        };
        drop(queues);
        self.touch();
        (200, response.to_string())
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Entry {
    message_body: String,
    message_group_id: Option<String>,
    message_deduplication_id: Option<String>,
    #[serde(default)]
    message_attributes: std::collections::BTreeMap<String, AttributeValue>,
    delay_seconds: Option<u64>,
}

impl From<Entry> for NewMessage {
    fn from(entry: Entry) -> NewMessage {
        NewMessage {
            body: entry.message_body,
            group: entry.message_group_id,
            deduplication_id: entry.message_deduplication_id,
            attributes: entry.message_attributes,
            delay_seconds: entry.delay_seconds,
            trace_header: None,
        }
    }
}
