//! Operations on messages.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::batch::{Batch, BatchResult};
use super::checksums::{hex, md5_hex, md5_of_attributes, read_receipt, receipt_handle};
use super::{Empty, queue_name, within};
use crate::error::ApiError;
use crate::queue::{AttributeValue, Message, NewMessage, Queue};
use crate::service::{Queues, State};

const MAX_BATCH_BYTES: usize = 1024 * 1024;
const MAX_ATTRIBUTES: usize = 10;
const MAX_VISIBILITY_SECONDS: u64 = 43_200;

/// Fields of a single message, and the queue.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct OnQueue<T> {
    pub(super) queue_url: String,
    #[serde(flatten)]
    pub(super) fields: T,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct SendFields {
    message_body: String,
    #[serde(default)]
    message_attributes: BTreeMap<String, AttributeValue>,
    #[serde(default)]
    message_system_attributes: BTreeMap<String, AttributeValue>,
    message_group_id: Option<String>,
    message_deduplication_id: Option<String>,
    delay_seconds: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct ReceiptFields {
    receipt_handle: String,
    visibility_timeout: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Receive {
    queue_url: String,
    max_number_of_messages: Option<usize>,
    wait_time_seconds: Option<u64>,
    visibility_timeout: Option<u64>,
    #[serde(default)]
    attribute_names: Vec<String>,
    #[serde(default)]
    message_system_attribute_names: Vec<String>,
    #[serde(default)]
    message_attribute_names: Vec<String>,
}

#[derive(Serialize)]
pub(super) struct SentMessage {
    #[serde(rename = "MessageId")]
    message_id: String,
    #[serde(rename = "MD5OfMessageBody")]
    md5_of_body: String,
    #[serde(
        rename = "MD5OfMessageAttributes",
        skip_serializing_if = "Option::is_none"
    )]
    md5_of_attributes: Option<String>,
    #[serde(rename = "SequenceNumber", skip_serializing_if = "Option::is_none")]
    sequence_number: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct ReceivedMessages {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    messages: Vec<ReceivedMessage>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct ReceivedMessage {
    message_id: String,
    receipt_handle: String,
    #[serde(rename = "MD5OfBody")]
    md5_of_body: String,
    body: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    attributes: BTreeMap<&'static str, String>,
    #[serde(
        rename = "MD5OfMessageAttributes",
        skip_serializing_if = "Option::is_none"
    )]
    md5_of_attributes: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    message_attributes: BTreeMap<String, AttributeValue>,
}

impl Queues {
    pub(super) fn send_batch(
        &self,
        request: Batch<SendFields>,
    ) -> Result<BatchResult<SentMessage>, ApiError> {
        let bytes: usize = request
            .entries
            .iter()
            .map(|entry| entry.fields.bytes())
            .sum();
        if bytes > MAX_BATCH_BYTES {
            let text = format!(
                "Batch requests cannot be longer than {MAX_BATCH_BYTES} bytes. You have sent {bytes} bytes."
            );
            return Err(ApiError::sqs("BatchRequestTooLong", text));
        }
        self.serve_each(request, send_one)
    }
    pub(super) async fn receive_messages(
        &self,
        request: Receive,
    ) -> Result<ReceivedMessages, ApiError> {
        let name = queue_name(&request.queue_url)?;
        let max = request.max_number_of_messages.unwrap_or(1);
        if !(1..=10).contains(&max) {
            return Err(ApiError::invalid(format!(
                "Value {max} for parameter MaxNumberOfMessages is invalid. Reason: Must be between 1 and 10, if provided."
            )));
        }
        within("WaitTimeSeconds", request.wait_time_seconds, 20)?;
        within(
            "VisibilityTimeout",
            request.visibility_timeout,
            MAX_VISIBILITY_SECONDS,
        )?;
        let wait = request.wait_time_seconds.map(Duration::from_secs);
        let messages = self
            .receive(name, max, request.visibility_timeout, wait)
            .await?;
        let messages = messages.into_iter();
        Ok(ReceivedMessages {
            messages: messages
                .map(|message| self.received(name, message, &request))
                .collect(),
        })
    }

    fn received(&self, queue: &str, message: Message, request: &Receive) -> ReceivedMessage {
        let (receipt, is_fifo) = (message.receipt(), queue.ends_with(".fifo"));
        let first_receive = message.first_receive_ms.unwrap_or_default();
        let deduplication = message.deduplication_id.unwrap_or_default();
        let source = message
            .dead_letter_source
            .map(|source| self.queue_arn(&source));
        let all = [
            ("SenderId", Some(self.config().account.clone())),
            ("SentTimestamp", Some(message.sent_ms.to_string())),
            (
                "ApproximateReceiveCount",
                Some(message.receives.to_string()),
            ),
            (
                "ApproximateFirstReceiveTimestamp",
                Some(first_receive.to_string()),
            ),
            ("MessageGroupId", message.group),
            ("MessageDeduplicationId", is_fifo.then_some(deduplication)),
            (
                "SequenceNumber",
                is_fifo.then(|| format!("{:020}", message.number)),
            ),
            ("DeadLetterQueueSourceArn", source),
            ("AWSTraceHeader", message.trace_header),
        ];
        let wanted = |name: &str| {
            let names = request.attribute_names.iter();
            let mut names = names.chain(&request.message_system_attribute_names);
            names.any(|wanted| wanted == "All" || wanted == name)
        };
        let known = all
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)));
        let mut message_attributes = message.attributes;
        message_attributes.retain(|name, _| request.wants_attribute(name));
        ReceivedMessage {
            message_id: message.id,
            receipt_handle: receipt_handle(queue, receipt),
            md5_of_body: md5_hex(message.body.as_bytes()),
            body: message.body,
            attributes: known.filter(|(name, _)| wanted(name)).collect(),
            md5_of_attributes: md5_of_attributes(&message_attributes),
            message_attributes,
        }
    }

    /// Serves each entry of a batch, if the queue exists. A receiver finds all or none of them.
    pub(super) fn serve_each<T, R>(
        &self,
        request: Batch<T>,
        serve: impl Fn(&mut State, &str, T) -> Result<R, ApiError>,
    ) -> Result<BatchResult<R>, ApiError> {
        let name = queue_name(&request.queue_url)?.to_owned();
        let mut state = self.lock();
        state.queue(&name)?;
        state.journaled_together(|state| request.serve_each(|fields| serve(state, &name, fields)))
    }
}

pub(super) fn send_one(
    state: &mut State,
    queue: &str,
    fields: SendFields,
) -> Result<SentMessage, ApiError> {
    let message = fields.check(&state.queue(queue)?.queue)?;
    let md5_of_body = md5_hex(message.body.as_bytes());
    let md5_of_attributes = md5_of_attributes(&message.attributes);
    let sent = state.send(queue, message)?;
    Ok(SentMessage {
        message_id: sent.id,
        md5_of_body,
        md5_of_attributes,
        sequence_number: queue
            .ends_with(".fifo")
            .then(|| format!("{:020}", sent.number)),
    })
}

pub(super) fn delete_one(
    state: &mut State,
    queue: &str,
    fields: ReceiptFields,
) -> Result<Empty, ApiError> {
    let receipt = read_receipt(queue, &fields.receipt_handle)?;
    state.delete(queue, receipt).map(|()| Empty {})
}

pub(super) fn set_visibility(
    state: &mut State,
    queue: &str,
    fields: ReceiptFields,
) -> Result<Empty, ApiError> {
    let seconds = fields.visibility_timeout;
    within("VisibilityTimeout", seconds, MAX_VISIBILITY_SECONDS)?;
    let seconds = seconds.ok_or_else(|| ApiError::missing("VisibilityTimeout"))?;
    let receipt = read_receipt(queue, &fields.receipt_handle)?;
    let changed = state.change_visibility(queue, receipt, seconds);
    changed.map(|()| Empty {})
}

impl Receive {
    fn wants_attribute(&self, name: &str) -> bool {
        let mut wanted = self.message_attribute_names.iter();
        wanted.any(|wanted| match wanted.strip_suffix(".*") {
            Some(prefix) => name.starts_with(prefix),
            None => wanted == "All" || wanted == name,
        })
    }
}

impl SendFields {
    /// Size of the body and the attributes, as SQS counts it.
    fn bytes(&self) -> usize {
        let attributes = self.message_attributes.iter().map(|(name, value)| {
            let text = value.string_value.as_deref().map_or(0, str::len);
            let binary = value.binary_value.as_deref().map_or(0, |b| b.len() / 4 * 3);
            name.len() + value.data_type.len() + text + binary
        });
        self.message_body.len() + attributes.sum::<usize>()
    }

    /// The message, if the queue takes it.
    fn check(mut self, queue: &Queue) -> Result<NewMessage, ApiError> {
        if self.message_body.is_empty() {
            return Err(ApiError::missing("MessageBody"));
        }
        let limit = queue.attributes().max_message_bytes;
        if self.bytes() > limit {
            return Err(ApiError::invalid(format!(
                "One or more parameters are invalid. Reason: Message must be shorter than {limit} bytes."
            )));
        }
        if !self.message_body.chars().all(is_allowed) {
            let text = "Invalid characters found. Valid unicode characters are #x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF";
            return Err(ApiError::new("InvalidMessageContents", text));
        }
        within("DelaySeconds", self.delay_seconds, 900)?;
        check_attributes(&self.message_attributes)?;
        let not_for_this_queue = |parameter| {
            ApiError::invalid(format!(
                "Value for parameter {parameter} is invalid. Reason: The request include parameter that is not valid for this queue type."
            ))
        };
        if queue.is_fifo() {
            if self.message_group_id.as_deref().is_none_or(str::is_empty) {
                return Err(ApiError::missing("MessageGroupId"));
            }
            if self.delay_seconds.take().is_some_and(|seconds| seconds > 0) {
                return Err(not_for_this_queue("DelaySeconds"));
            }
            if self.message_deduplication_id.is_none() {
                if !queue.attributes().content_based_deduplication {
                    return Err(ApiError::invalid(
                        "The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly",
                    ));
                }
                use sha2::Digest as _;
                let hash = sha2::Sha256::digest(self.message_body.as_bytes());
                self.message_deduplication_id = Some(hex(&hash));
            }
        } else if self.message_deduplication_id.is_some() {
            return Err(not_for_this_queue("MessageDeduplicationId"));
        }
        let trace = self.message_system_attributes.remove("AWSTraceHeader");
        Ok(NewMessage {
            body: self.message_body,
            attributes: self.message_attributes,
            group: self.message_group_id,
            deduplication_id: self.message_deduplication_id,
            delay_seconds: self.delay_seconds,
            trace_header: trace.and_then(|value| value.string_value),
        })
    }
}

fn check_attributes(attributes: &BTreeMap<String, AttributeValue>) -> Result<(), ApiError> {
    if attributes.len() > MAX_ATTRIBUTES {
        return Err(ApiError::invalid(format!(
            "Number of message attributes [{}] exceeds the allowed maximum [10].",
            attributes.len()
        )));
    }
    for (name, value) in attributes {
        let (text, binary) = (value.string_value.as_deref(), value.binary_value.as_deref());
        let base = value.data_type.split('.').next().unwrap_or_default();
        let has_value = match base {
            "String" | "Number" => text.is_some_and(|text| !text.is_empty()),
            "Binary" => binary.is_some_and(|binary| STANDARD.decode(binary).is_ok()),
            _ => {
                return Err(ApiError::invalid(format!(
                    "The type of message (user) attribute '{name}' is invalid. You must use only the following supported type prefixes: Binary, Number, String."
                )));
            }
        };
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if !has_value || name.is_empty() || name.len() > 256 || !name.chars().all(allowed) {
            return Err(ApiError::invalid(format!(
                "Message (user) attribute '{name}' must contain a non-empty value of type '{base}'."
            )));
        }
    }
    Ok(())
}

/// Characters that XML, and so SQS, can carry.
fn is_allowed(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..)
}
