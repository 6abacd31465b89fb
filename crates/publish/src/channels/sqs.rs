//! Queues of SQS, standard and FIFO, by `SendMessageBatch`.
//!
//! The role needs `sqs:SendMessage`, and `sqs:GetQueueUrl` unless the queue is given by its URL. FIFO queues get the
//! message's key as group and the notification's id as deduplication id (see [`group_id`]). Standard queues get the
//! delay, and with [`SqsChannel::with_tenants`] the tenant as group, which makes the queue fair: a tenant with many
//! or slow messages delays only its own.

use std::sync::Arc;

use antumbra_registration::Queue;
use antumbra_registration::target::Sqs;
use antumbra_service::notifications::{Channel, ChannelLimits, Message, SendError};
use async_trait::async_trait;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::{MessageAttributeValue, SendMessageBatchRequestEntry};
use tokio::sync::OnceCell;

use super::batch::{self, Batch, CONCURRENT_BATCHES, Sent};
use super::ids::{deduplication_id, group_id};
use super::{AwsChannelFactory, client_in_region};
use crate::LazyClient;
use crate::classify::{entry_error, sdk_error};

pub const BATCH_COUNT: usize = 10;
/// Maximum bytes of a message, and of all messages of a call.
pub const BYTES: usize = 1024 * 1024;
/// The limit until August 2025, and of some emulators and private regions.
pub const SMALL_BYTES: usize = 256 * 1024;
pub const DELAY_SECONDS: u32 = 900;

pub(super) fn open(target: &Sqs, factory: &AwsChannelFactory) -> Arc<dyn Channel> {
    factory.queue(target.queue.as_str())
}

#[derive(Debug)]
pub struct SqsChannel {
    client: LazyClient<Client>,
    queue: Queue,
    label: String,
    url: OnceCell<String>,
    bytes: usize,
    tenants: bool,
}

impl SqsChannel {
    /// Opens the queue with this name, URL or ARN, in the region that the URL or ARN names. Calls nothing yet.
    pub fn new(client: impl Into<LazyClient<Client>>, queue: &str) -> SqsChannel {
        let label = format!("SQS {queue}");
        let queue = Queue::parse(queue);
        SqsChannel {
            client: client_in_region!(client, queue.region()),
            queue,
            label,
            url: OnceCell::new(),
            bytes: BYTES,
            tenants: false,
        }
    }

    /// Sends the tenant of a message as its group on standard queues. SQS supports this since July 2025; emulators
    /// reject such messages.
    #[must_use]
    pub fn with_tenants(self, tenants: bool) -> SqsChannel {
        SqsChannel { tenants, ..self }
    }

    #[must_use]
    pub fn with_bytes(self, bytes: usize) -> SqsChannel {
        SqsChannel { bytes, ..self }
    }

    /// Returns the queue's URL. A success is kept, a failure is not.
    async fn url(&self) -> Result<&str, SendError> {
        let resolve = || async {
            if let Queue::Url(url) = &self.queue {
                return Ok(url.clone());
            }
            let account = self.queue.account().map(str::to_owned);
            let call = self.client.get_queue_url().queue_name(self.queue.name());
            match call.set_queue_owner_aws_account_id(account).send().await {
                Ok(response) => response
                    .queue_url
                    .ok_or_else(|| SendError::Retry(format!("{}: no URL", self.label))),
                Err(error) => Err(sdk_error(&self.label, &error)),
            }
        };
        self.url.get_or_try_init(resolve).await.map(String::as_str)
    }

    fn entry(&self, id: String, message: &Message) -> Result<SendMessageBatchRequestEntry, String> {
        batch::check_size(message, self.limits())?;
        let entry = SendMessageBatchRequestEntry::builder()
            .id(id)
            .message_body(batch::body(message)?)
            .set_message_attributes(attributes(message)?);
        let entry = if self.queue.is_fifo() {
            entry
                .message_group_id(group_id(&message.key))
                .message_deduplication_id(deduplication_id(&message.id))
        } else {
            // A group on a standard queue does not order messages; it makes the queue fair.
            entry
                .set_delay_seconds(delay(message)?)
                .set_message_group_id(
                    message
                        .tenant
                        .as_deref()
                        .filter(|_| self.tenants)
                        .map(group_id),
                )
        };
        entry.build().map_err(|error| error.to_string())
    }
}

#[async_trait]
impl Channel for SqsChannel {
    fn limits(&self) -> ChannelLimits {
        ChannelLimits {
            batch_count: BATCH_COUNT,
            batch_bytes: self.bytes,
            message_bytes: self.bytes,
        }
    }

    fn concurrent_calls(&self) -> usize {
        CONCURRENT_BATCHES
    }

    async fn send(&self, messages: &[Message]) -> Vec<Sent> {
        let mut batch = Batch::new(&self.label, messages);
        let entries = batch.entries(|id, message| self.entry(id, message));
        if entries.is_empty() {
            return batch.results();
        }
        let url = match self.url().await {
            Ok(url) => url,
            Err(error) => return batch.fail(&error),
        };
        let call = self.client.send_message_batch().queue_url(url);
        let response = match call.set_entries(Some(entries)).send().await {
            Ok(response) => response,
            Err(error) => return batch.fail(&sdk_error(&self.label, &error)),
        };
        for sent in response.successful() {
            batch.settle(sent.id(), Ok(()));
        }
        for failed in response.failed() {
            let (code, message) = (failed.code(), failed.message());
            let error = entry_error(&self.label, code, message, failed.sender_fault());
            batch.settle(failed.id(), Err(error));
        }
        batch.results()
    }
}

type Attributes = std::collections::HashMap<String, MessageAttributeValue>;

fn attributes(message: &Message) -> Result<Option<Attributes>, String> {
    let text = |(name, value)| {
        let value = MessageAttributeValue::builder()
            .data_type("String")
            .string_value(value)
            .build()
            .map_err(|error| error.to_string())?;
        Ok((name, value))
    };
    let attributes = batch::attributes(message)?.into_iter().map(text);
    let attributes: Attributes = attributes.collect::<Result<_, String>>()?;
    Ok((!attributes.is_empty()).then_some(attributes))
}

fn delay(message: &Message) -> Result<Option<i32>, String> {
    match message.delay_seconds {
        Some(delay) if delay > DELAY_SECONDS => Err(format!(
            "the delay is {delay} seconds, the limit is {DELAY_SECONDS}"
        )),
        delay => Ok(delay.and_then(|delay| i32::try_from(delay).ok())),
    }
}
