//! The SQS API over its JSON protocol: a POST with the operation in `x-amz-target`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use http::{Response, StatusCode};
use md5::{Digest as _, Md5};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::error::ApiError;
use crate::journal::QueueEntry;
use crate::queue::{AttributeValue, Message, NewMessage, Queue, Receipt, Redrive, Sent};
use crate::service::{QueueState, Queues, now_ms};

/// Prefix of the header `x-amz-target`.
pub const TARGET: &str = "AmazonSQS.";
/// Bytes of all messages of one batch.
const MAX_BATCH_BYTES: usize = 1024 * 1024;
const MAX_BATCH_ENTRIES: usize = 10;
const MAX_ATTRIBUTES: usize = 10;

type Answer = Result<Value, ApiError>;

impl Queues {
    /// Serves one request of the JSON protocol.
    pub async fn sqs(&self, operation: &str, body: &[u8]) -> Response<Bytes> {
        let answer = self.call(operation, body).await;
        let (status, error, body) = match answer {
            Ok(value) => (StatusCode::OK, None, value),
            Err(error) => {
                let body = json!({
                    "__type": format!("com.amazonaws.sqs#{}", error.code),
                    "message": error.message,
                });
                (error.status(), Some(error), body)
            }
        };
        let mut response = Response::new(body.to_string().into());
        *response.status_mut() = status;
        let headers = response.headers_mut();
        let json = http::HeaderValue::from_static("application/x-amz-json-1.0");
        headers.insert(http::header::CONTENT_TYPE, json);
        let id = uuid::Uuid::new_v4().to_string();
        headers.extend(
            id.parse()
                .map(|id| (http::HeaderName::from_static("x-amzn-requestid"), id)),
        );
        if let Some(error) = error {
            let side = if error.sender { "Sender" } else { "Receiver" };
            let code = format!("{};{side}", error.query_code).parse();
            headers.extend(
                code.map(|code| (http::HeaderName::from_static("x-amzn-query-error"), code)),
            );
        }
        response
    }

    async fn call(&self, operation: &str, body: &[u8]) -> Answer {
        match operation {
            "CreateQueue" => self.create_queue(read(body)?),
            "DeleteQueue" => {
                let request: OnQueue = read(body)?;
                self.lock().delete_queue(request.name()?)?;
                Ok(json!({}))
            }
            "GetQueueUrl" => {
                let request: QueueName = read(body)?;
                self.lock().queue(&request.queue_name)?;
                Ok(json!({ "QueueUrl": self.queue_url(&request.queue_name) }))
            }
            "ListQueues" => self.list_queues(&read(body)?),
            "GetQueueAttributes" => self.get_attributes(&read(body)?),
            "SetQueueAttributes" => self.set_attributes(&read(body)?),
            "PurgeQueue" => {
                let request: OnQueue = read(body)?;
                self.lock().purge(request.name()?)?;
                Ok(json!({}))
            }
            "SendMessage" => {
                let request: SendMessage = read(body)?;
                let name = queue_name(&request.queue_url)?;
                let mut state = self.lock();
                let queue = state.queue(name)?;
                let message = request.message.check(&queue.queue)?;
                let md5 = SentMd5::of(&message);
                let is_fifo = queue.queue.is_fifo();
                let sent = state.send(name, message)?;
                Ok(sent_response(&sent, &md5, is_fifo))
            }
            "SendMessageBatch" => self.send_batch(read(body)?),
            "ReceiveMessage" => self.receive_messages(read(body)?).await,
            "DeleteMessage" => {
                let request: OnReceipt = read(body)?;
                let name = queue_name(&request.queue_url)?;
                self.delete_message(name, &request.receipt_handle)?;
                Ok(json!({}))
            }
            "DeleteMessageBatch" => {
                let request: Batch<ReceiptEntry> = read(body)?;
                let name = queue_name(&request.queue_url)?.to_owned();
                self.lock().queue(&name)?;
                request.each(|entry| {
                    self.delete_message(&name, &entry.receipt_handle)
                        .map(|()| json!({}))
                })
            }
            "ChangeMessageVisibility" => {
                let request: VisibilityRequest = read(body)?;
                let name = queue_name(&request.queue_url)?;
                self.change_visibility(name, &request.entry)?;
                Ok(json!({}))
            }
            "ChangeMessageVisibilityBatch" => {
                let request: Batch<ReceiptEntry> = read(body)?;
                let name = queue_name(&request.queue_url)?.to_owned();
                self.lock().queue(&name)?;
                request.each(|entry| self.change_visibility(&name, entry).map(|()| json!({})))
            }
            "ListDeadLetterSourceQueues" => {
                let request: OnQueue = read(body)?;
                let (name, state) = (request.name()?, self.lock());
                state.queue(name)?;
                let sources = state
                    .queues
                    .values()
                    .filter(|found| is_source_of(found, name));
                let urls: Vec<_> = sources
                    .map(|found| self.queue_url(found.queue.name()))
                    .collect();
                Ok(json!({ "queueUrls": urls }))
            }
            "StartMessageMoveTask" => self.start_move(&read(body)?),
            "ListMessageMoveTasks" => Ok(json!({ "Results": [] })),
            "TagQueue" | "UntagQueue" => {
                let request: TagRequest = read(body)?;
                let mut state = self.lock();
                let mut entry = state.queue(queue_name(&request.queue_url)?)?.entry.clone();
                entry.tags.extend(request.tags);
                entry.tags.retain(|key, _| !request.tag_keys.contains(key));
                state.put_queue(entry)?;
                Ok(json!({}))
            }
            "ListQueueTags" => {
                let request: OnQueue = read(body)?;
                Ok(json!({ "Tags": self.lock().queue(request.name()?)?.entry.tags }))
            }
            other => {
                let text = format!("the local SQS does not support {other}");
                Err(ApiError::new("UnsupportedOperation", text))
            }
        }
    }

    fn create_queue(&self, request: CreateQueue) -> Answer {
        let name = &request.queue_name;
        let base = name.strip_suffix(".fifo").unwrap_or(name);
        let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if base.is_empty() || name.len() > 80 || !base.chars().all(allowed) {
            return Err(ApiError::invalid(
                "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length",
            ));
        }
        let is_fifo = request
            .attributes
            .get("FifoQueue")
            .is_some_and(|fifo| fifo == "true");
        if is_fifo != name.ends_with(".fifo") {
            return Err(ApiError::invalid(
                "The name of a FIFO queue can only end in .fifo, with FifoQueue true",
            ));
        }
        let mut entry = QueueEntry {
            name: name.clone(),
            tags: request.tags,
            created_ms: now_ms(),
            ..QueueEntry::default()
        };
        apply(&request.attributes, &mut entry)?;
        let mut state = self.lock();
        if let Some(found) = state.queues.get(name) {
            let mut wanted = found.entry.clone();
            apply(&request.attributes, &mut wanted)?;
            if wanted.attributes != found.entry.attributes {
                return Err(ApiError::with_query_code(
                    "QueueNameExists",
                    "QueueAlreadyExists",
                    "A queue already exists with the same name and a different value for an attribute",
                ));
            }
        } else {
            state.put_queue(entry)?;
        }
        Ok(json!({ "QueueUrl": self.queue_url(name) }))
    }

    fn list_queues(&self, request: &ListQueues) -> Answer {
        let state = self.lock();
        let prefix = request.queue_name_prefix.as_deref().unwrap_or_default();
        let names = state.queues.keys().filter(|name| name.starts_with(prefix));
        let urls: Vec<String> = names.map(|name| self.queue_url(name)).collect();
        Ok(json!({ "QueueUrls": urls }))
    }

    fn get_attributes(&self, request: &AttributesRequest) -> Answer {
        let name = queue_name(&request.queue_url)?;
        let state = self.lock();
        let found = state.queue(name)?;
        let wanted = |attribute: &str| {
            request
                .attribute_names
                .iter()
                .any(|n| n == "All" || n == attribute)
        };
        let mut all = self.describe(found);
        all.retain(|attribute, _| wanted(attribute));
        match all.is_empty() {
            true => Ok(json!({})),
            false => Ok(json!({ "Attributes": all })),
        }
    }

    fn describe(&self, found: &QueueState) -> Map<String, Value> {
        let (queue, entry) = (&found.queue, &found.entry);
        let attributes = queue.attributes();
        let counts = queue.counts(now_ms());
        let mut all: BTreeMap<&str, String> = BTreeMap::from([
            ("QueueArn", self.queue_arn(queue.name())),
            ("ApproximateNumberOfMessages", counts.visible.to_string()),
            (
                "ApproximateNumberOfMessagesNotVisible",
                counts.in_flight.to_string(),
            ),
            (
                "ApproximateNumberOfMessagesDelayed",
                counts.delayed.to_string(),
            ),
            ("CreatedTimestamp", (entry.created_ms / 1000).to_string()),
            (
                "LastModifiedTimestamp",
                (entry.modified_ms / 1000).to_string(),
            ),
            (
                "VisibilityTimeout",
                attributes.visibility_seconds.to_string(),
            ),
            ("DelaySeconds", attributes.delay_seconds.to_string()),
            (
                "MaximumMessageSize",
                attributes.max_message_bytes.to_string(),
            ),
            (
                "MessageRetentionPeriod",
                attributes.retention_seconds.to_string(),
            ),
            (
                "ReceiveMessageWaitTimeSeconds",
                attributes.wait_seconds.to_string(),
            ),
        ]);
        if let Some(redrive) = &attributes.redrive {
            let policy = json!({
                "deadLetterTargetArn": self.queue_arn(&redrive.dead_letter_queue),
                "maxReceiveCount": redrive.max_receive_count,
            });
            all.insert("RedrivePolicy", policy.to_string());
        }
        if queue.is_fifo() {
            all.insert("FifoQueue", "true".to_owned());
            let content_based = attributes.content_based_deduplication.to_string();
            all.insert("ContentBasedDeduplication", content_based);
        }
        let other = entry.other_attributes.iter();
        all.extend(other.map(|(name, value)| (name.as_str(), value.clone())));
        all.into_iter()
            .map(|(name, value)| (name.to_owned(), value.into()))
            .collect()
    }

    fn set_attributes(&self, request: &SetAttributes) -> Answer {
        let mut state = self.lock();
        let mut entry = state.queue(queue_name(&request.queue_url)?)?.entry.clone();
        apply(&request.attributes, &mut entry)?;
        state.put_queue(entry)?;
        Ok(json!({}))
    }

    fn send_batch(&self, request: Batch<SendEntry>) -> Answer {
        let name = queue_name(&request.queue_url)?.to_owned();
        let bytes: usize = request
            .entries
            .iter()
            .map(|entry| entry.fields.message.bytes())
            .sum();
        if bytes > MAX_BATCH_BYTES {
            let text = format!(
                "Batch requests cannot be longer than {MAX_BATCH_BYTES} bytes. You have sent {bytes} bytes."
            );
            let code = "AWS.SimpleQueueService.BatchRequestTooLong";
            return Err(ApiError::with_query_code("BatchRequestTooLong", code, text));
        }
        let mut state = self.lock();
        state.queue(&name)?;
        request.each(|entry| {
            let queue = &state.queue(&name)?.queue;
            let (is_fifo, message) = (queue.is_fifo(), entry.message.clone().check(queue)?);
            let md5 = SentMd5::of(&message);
            let sent = state.send(&name, message)?;
            Ok(sent_response(&sent, &md5, is_fifo))
        })
    }

    async fn receive_messages(&self, request: ReceiveMessage) -> Answer {
        let name = queue_name(&request.queue_url)?;
        let max = request.max_number_of_messages.unwrap_or(1);
        if !(1..=10).contains(&max) {
            let text = format!(
                "Value {max} for parameter MaxNumberOfMessages is invalid. Reason: Must be between 1 and 10, if provided."
            );
            return Err(ApiError::invalid(text));
        }
        within("WaitTimeSeconds", request.wait_time_seconds, 20)?;
        within("VisibilityTimeout", request.visibility_timeout, 43_200)?;
        let wait = request.wait_time_seconds.map(Duration::from_secs);
        let messages = self
            .receive(name, max, request.visibility_timeout, wait)
            .await?;
        let is_fifo = name.ends_with(".fifo");
        let messages: Vec<Value> = messages
            .iter()
            .map(|message| self.received(name, is_fifo, message, &request))
            .collect();
        match messages.is_empty() {
            true => Ok(json!({})),
            false => Ok(json!({ "Messages": messages })),
        }
    }

    fn received(
        &self,
        name: &str,
        is_fifo: bool,
        message: &Message,
        request: &ReceiveMessage,
    ) -> Value {
        let mut system: BTreeMap<&str, String> = BTreeMap::from([
            ("SenderId", self.config().account.clone()),
            ("SentTimestamp", message.sent_ms.to_string()),
            ("ApproximateReceiveCount", message.receives.to_string()),
        ]);
        let first = message.first_receive_ms.unwrap_or_default().to_string();
        system.insert("ApproximateFirstReceiveTimestamp", first);
        if let Some(group) = &message.group {
            system.insert("MessageGroupId", group.clone());
        }
        if is_fifo {
            let deduplication = message.deduplication_id.clone().unwrap_or_default();
            system.insert("MessageDeduplicationId", deduplication);
            system.insert("SequenceNumber", format!("{:020}", message.number));
        }
        if let Some(source) = &message.dead_letter_source {
            system.insert("DeadLetterQueueSourceArn", self.queue_arn(source));
        }
        if let Some(trace) = &message.trace_header {
            system.insert("AWSTraceHeader", trace.clone());
        }
        let names = || {
            request
                .attribute_names
                .iter()
                .chain(&request.message_system_attribute_names)
        };
        system.retain(|name, _| names().any(|wanted| wanted == "All" || wanted == name));
        let attributes: BTreeMap<_, _> = message
            .attributes
            .iter()
            .filter(|(name, _)| request.wants_attribute(name))
            .collect();
        let mut value = json!({
            "MessageId": message.id,
            "ReceiptHandle": receipt_handle(name, message.receipt()),
            "MD5OfBody": md5_hex(message.body.as_bytes()),
            "Body": message.body,
        });
        if !system.is_empty() {
            value["Attributes"] = json!(system);
        }
        if !attributes.is_empty() {
            value["MD5OfMessageAttributes"] =
                md5_of_attributes(attributes.iter().map(|(n, v)| (*n, *v))).into();
            value["MessageAttributes"] = json!(attributes);
        }
        value
    }

    fn delete_message(&self, name: &str, handle: &str) -> Result<(), ApiError> {
        let receipt = read_receipt(name, handle)?;
        self.lock().delete(name, receipt)
    }

    fn change_visibility(&self, name: &str, entry: &ReceiptEntry) -> Result<(), ApiError> {
        within("VisibilityTimeout", entry.visibility_timeout, 43_200)?;
        let seconds = entry
            .visibility_timeout
            .ok_or_else(|| ApiError::missing("VisibilityTimeout"))?;
        let receipt = read_receipt(name, &entry.receipt_handle)?;
        self.lock().change_visibility(name, receipt, seconds)
    }

    fn start_move(&self, request: &StartMove) -> Answer {
        let of_arn = |arn: &str| arn.rsplit(':').next().unwrap_or_default().to_owned();
        let source = of_arn(&request.source_arn);
        let destination = request.destination_arn.as_deref().map(of_arn);
        let mut state = self.lock();
        let not_found =
            || ApiError::new("ResourceNotFoundException", "The resource does not exist.");
        if !state.queues.contains_key(&source) {
            return Err(not_found());
        }
        if destination
            .as_ref()
            .is_some_and(|name| !state.queues.contains_key(name))
        {
            return Err(not_found());
        }
        if !state
            .queues
            .values()
            .any(|found| is_source_of(found, &source))
        {
            return Err(ApiError::invalid(
                "Source queue must be configured as a Dead Letter Queue.",
            ));
        }
        state.move_messages(&source, destination.as_deref())?;
        Ok(json!({ "TaskHandle": URL_SAFE_NO_PAD.encode(format!("{source}:{}", now_ms())) }))
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct OnQueue {
    queue_url: String,
}

impl OnQueue {
    fn name(&self) -> Result<&str, ApiError> {
        queue_name(&self.queue_url)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct QueueName {
    queue_name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct CreateQueue {
    queue_name: String,
    #[serde(default)]
    attributes: BTreeMap<String, String>,
    #[serde(default, rename = "tags")]
    tags: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ListQueues {
    queue_name_prefix: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct AttributesRequest {
    queue_url: String,
    #[serde(default)]
    attribute_names: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct SetAttributes {
    queue_url: String,
    attributes: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct TagRequest {
    queue_url: String,
    #[serde(default)]
    tags: BTreeMap<String, String>,
    #[serde(default)]
    tag_keys: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct OnReceipt {
    queue_url: String,
    receipt_handle: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ReceiptEntry {
    receipt_handle: String,
    visibility_timeout: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct VisibilityRequest {
    queue_url: String,
    #[serde(flatten)]
    entry: ReceiptEntry,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct StartMove {
    source_arn: String,
    destination_arn: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct SendMessage {
    queue_url: String,
    #[serde(flatten)]
    message: MessageFields,
}

#[derive(Deserialize)]
struct SendEntry {
    #[serde(flatten)]
    message: MessageFields,
}

#[derive(Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct MessageFields {
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
struct ReceiveMessage {
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

impl ReceiveMessage {
    fn wants_attribute(&self, name: &str) -> bool {
        self.message_attribute_names
            .iter()
            .any(|wanted| match wanted.strip_suffix(".*") {
                Some(prefix) => name.starts_with(prefix),
                None => wanted == "All" || wanted == name,
            })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Batch<T> {
    queue_url: String,
    #[serde(default = "Vec::new")]
    entries: Vec<BatchEntry<T>>,
}

#[derive(Deserialize)]
struct BatchEntry<T> {
    #[serde(rename = "Id")]
    id: String,
    #[serde(flatten)]
    fields: T,
}

impl<T> Batch<T> {
    /// Serves each entry and collects the results.
    fn each(&self, mut serve: impl FnMut(&T) -> Answer) -> Answer {
        self.check()?;
        let (mut successful, mut failed) = (Vec::new(), Vec::new());
        for entry in &self.entries {
            match serve(&entry.fields) {
                Ok(mut result) => {
                    result["Id"] = entry.id.clone().into();
                    successful.push(result);
                }
                Err(error) => failed.push(json!({
                    "Id": entry.id,
                    "Code": error.query_code,
                    "Message": error.message,
                    "SenderFault": error.sender,
                })),
            }
        }
        Ok(json!({ "Successful": successful, "Failed": failed }))
    }

    fn check(&self) -> Result<(), ApiError> {
        let refused =
            |code, query_code, text: &str| Err(ApiError::with_query_code(code, query_code, text));
        if self.entries.is_empty() {
            return refused(
                "EmptyBatchRequest",
                "AWS.SimpleQueueService.EmptyBatchRequest",
                "There should be at least one entry in the request.",
            );
        }
        if self.entries.len() > MAX_BATCH_ENTRIES {
            return refused(
                "TooManyEntriesInBatchRequest",
                "AWS.SimpleQueueService.TooManyEntriesInBatchRequest",
                "Maximum number of entries per request are 10.",
            );
        }
        let ids: BTreeSet<_> = self.entries.iter().map(|entry| &entry.id).collect();
        if ids.len() < self.entries.len() {
            return refused(
                "BatchEntryIdsNotDistinct",
                "AWS.SimpleQueueService.BatchEntryIdsNotDistinct",
                "Id repeated in the batch.",
            );
        }
        let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if ids
            .iter()
            .any(|id| id.is_empty() || id.len() > 80 || !id.chars().all(allowed))
        {
            return refused(
                "InvalidBatchEntryId",
                "AWS.SimpleQueueService.InvalidBatchEntryId",
                "A batch entry id can only contain alphanumeric characters, hyphens and underscores. \
                 It can be at most 80 letters long.",
            );
        }
        Ok(())
    }
}

impl MessageFields {
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
        let bytes = self.bytes();
        if bytes > limit {
            let text = format!(
                "One or more parameters are invalid. Reason: Message must be shorter than {limit} bytes."
            );
            return Err(ApiError::invalid(text));
        }
        if !self.message_body.chars().all(is_allowed) {
            let text = "Invalid characters found. Valid unicode characters are #x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF";
            return Err(ApiError::new("InvalidMessageContents", text));
        }
        within("DelaySeconds", self.delay_seconds, 900)?;
        check_attributes(&self.message_attributes)?;
        if queue.is_fifo() {
            if self
                .message_group_id
                .as_deref()
                .unwrap_or_default()
                .is_empty()
            {
                return Err(ApiError::missing("MessageGroupId"));
            }
            if self.delay_seconds.is_some_and(|seconds| seconds > 0) {
                let text = "Value for parameter DelaySeconds is invalid. Reason: The request include parameter that is not valid for this queue type.";
                return Err(ApiError::invalid(text));
            }
            self.delay_seconds = None;
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
            return Err(ApiError::invalid(
                "Value for parameter MessageDeduplicationId is invalid. Reason: The request include parameter that is not valid for this queue type.",
            ));
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
        let text = format!(
            "Number of message attributes [{}] exceeds the allowed maximum [10].",
            attributes.len()
        );
        return Err(ApiError::invalid(text));
    }
    for (name, value) in attributes {
        let base = value.data_type.split('.').next().unwrap_or_default();
        let full = match base {
            "String" | "Number" => value
                .string_value
                .as_deref()
                .is_some_and(|text| !text.is_empty()),
            "Binary" => value
                .binary_value
                .as_deref()
                .is_some_and(|binary| STANDARD.decode(binary).is_ok()),
            _ => {
                let text = format!(
                    "The type of message (user) attribute '{name}' is invalid. You must use only the following supported type prefixes: Binary, Number, String."
                );
                return Err(ApiError::invalid(text));
            }
        };
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if !full || name.is_empty() || name.len() > 256 || !name.chars().all(allowed) {
            let text = format!(
                "Message (user) attribute '{name}' must contain a non-empty value of type '{base}'."
            );
            return Err(ApiError::invalid(text));
        }
    }
    Ok(())
}

/// Characters that XML, and so SQS, can carry.
fn is_allowed(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..)
}

fn within(name: &str, value: Option<u64>, max: u64) -> Result<(), ApiError> {
    match value {
        Some(value) if value > max => {
            let text = format!(
                "Value {value} for parameter {name} is invalid. Reason: Must be >= 0 and <= {max}, if provided."
            );
            Err(ApiError::invalid(text))
        }
        _ => Ok(()),
    }
}

/// Reads attributes of a request into a queue's.
fn apply(given: &BTreeMap<String, String>, entry: &mut QueueEntry) -> Result<(), ApiError> {
    let to = &mut entry.attributes;
    for (name, value) in given {
        let invalid = || {
            let text = format!("Invalid value for the parameter {name}.");
            ApiError::new("InvalidAttributeValue", text)
        };
        let number = |from: u64, to: u64| {
            let number: u64 = value.parse().map_err(|_| invalid())?;
            (from..=to)
                .contains(&number)
                .then_some(number)
                .ok_or_else(invalid)
        };
        match name.as_str() {
            "VisibilityTimeout" => to.visibility_seconds = number(0, 43_200)?,
            "DelaySeconds" => to.delay_seconds = number(0, 900)?,
            "MessageRetentionPeriod" => to.retention_seconds = number(60, 1_209_600)?,
            "MaximumMessageSize" => to.max_message_bytes = number(1024, 1_048_576)? as usize,
            "ReceiveMessageWaitTimeSeconds" => to.wait_seconds = number(0, 20)?,
            "ContentBasedDeduplication" => to.content_based_deduplication = value == "true",
            "RedrivePolicy" => to.redrive = redrive(value).ok_or_else(invalid)?,
            "FifoQueue" => {}
            "Policy"
            | "RedriveAllowPolicy"
            | "KmsMasterKeyId"
            | "KmsDataKeyReusePeriodSeconds"
            | "SqsManagedSseEnabled"
            | "DeduplicationScope"
            | "FifoThroughputLimit" => {
                entry.other_attributes.insert(name.clone(), value.clone());
            }
            _ => {
                let text = format!("Unknown Attribute {name}.");
                return Err(ApiError::new("InvalidAttributeName", text));
            }
        }
    }
    Ok(())
}

/// A redrive policy; an empty one removes it. `None` if it is invalid.
fn redrive(policy: &str) -> Option<Option<Redrive>> {
    if policy.is_empty() {
        return Some(None);
    }
    let policy: Value = serde_json::from_str(policy).ok()?;
    let count = &policy["maxReceiveCount"];
    let count = count.as_u64().or_else(|| count.as_str()?.parse().ok())?;
    let (_, queue) = policy["deadLetterTargetArn"].as_str()?.rsplit_once(':')?;
    Some(Some(Redrive {
        dead_letter_queue: queue.to_owned(),
        max_receive_count: u32::try_from(count)
            .ok()
            .filter(|count| (1..=1000).contains(count))?,
    }))
}

fn is_source_of(found: &QueueState, dead_letter_queue: &str) -> bool {
    let redrive = found.queue.attributes().redrive.as_ref();
    redrive.is_some_and(|redrive| redrive.dead_letter_queue == dead_letter_queue)
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
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

fn receipt_handle(queue: &str, receipt: Receipt) -> String {
    URL_SAFE_NO_PAD.encode(format!("{queue}:{}:{}", receipt.number, receipt.receive))
}

fn read_receipt(queue: &str, handle: &str) -> Result<Receipt, ApiError> {
    let parse = || {
        let text = String::from_utf8(URL_SAFE_NO_PAD.decode(handle).ok()?).ok()?;
        let (rest, receive) = text.rsplit_once(':')?;
        let (name, number) = rest.rsplit_once(':')?;
        (name == queue).then_some(())?;
        Some(Receipt {
            number: number.parse().ok()?,
            receive: receive.parse().ok()?,
        })
    };
    parse().ok_or_else(|| {
        let text = format!("The input receipt handle \"{handle}\" is not a valid receipt handle.");
        ApiError::new("ReceiptHandleIsInvalid", text)
    })
}

/// Checksums of what was sent.
struct SentMd5 {
    body: String,
    attributes: Option<String>,
}

impl SentMd5 {
    fn of(message: &NewMessage) -> SentMd5 {
        let attributes = !message.attributes.is_empty();
        SentMd5 {
            body: md5_hex(message.body.as_bytes()),
            attributes: attributes.then(|| md5_of_attributes(message.attributes.iter())),
        }
    }
}

fn sent_response(sent: &Sent, md5: &SentMd5, is_fifo: bool) -> Value {
    let mut value = json!({ "MessageId": sent.id, "MD5OfMessageBody": md5.body });
    if let Some(attributes) = &md5.attributes {
        value["MD5OfMessageAttributes"] = attributes.clone().into();
    }
    if is_fifo {
        value["SequenceNumber"] = format!("{:020}", sent.number).into();
    }
    value
}

fn md5_hex(bytes: &[u8]) -> String {
    hex(&Md5::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The checksum over attributes in the order of their names, as SDKs compute it.
fn md5_of_attributes<'a>(
    attributes: impl Iterator<Item = (&'a String, &'a AttributeValue)>,
) -> String {
    let mut encoded = Vec::new();
    let add = |encoded: &mut Vec<u8>, bytes: &[u8]| {
        encoded.extend((bytes.len() as u32).to_be_bytes());
        encoded.extend(bytes);
    };
    for (name, value) in attributes {
        add(&mut encoded, name.as_bytes());
        add(&mut encoded, value.data_type.as_bytes());
        match (&value.string_value, &value.binary_value) {
            (Some(text), _) => {
                encoded.push(1);
                add(&mut encoded, text.as_bytes());
            }
            (None, binary) => {
                let bytes = binary
                    .as_deref()
                    .and_then(|binary| STANDARD.decode(binary).ok());
                encoded.push(2);
                add(&mut encoded, &bytes.unwrap_or_default());
            }
        }
    }
    md5_hex(&encoded)
}
