//! Queues of SQS, standard and FIFO, by `SendMessageBatch`.
//!
//! The role needs `sqs:SendMessage`, and `sqs:GetQueueUrl` unless the queue is
//! given by its URL. A queue whose name ends in `.fifo` gets the message's key
//! as its group and the notification's id for deduplication (see [`group_id`]),
//! and no delay of single messages, which FIFO queues do not have. Any other may get the message's tenant
//! as its group, which makes it a fair queue: a tenant with many or slow messages delays its own.

mod queue;
mod visibility;

use antumbra_service::notifications::{BoxFuture, Channel, ChannelLimits, Message, SendError};
use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::Region;
use aws_sdk_sqs::types::{MessageAttributeValue, SendMessageBatchRequestEntry};
use tokio::sync::OnceCell;

use crate::batch::{self, Batch, Sent};
use crate::classify::{entry_error, sdk_error};
use crate::ids::{deduplication_id, group_id};
use queue::Queue;
pub use visibility::SqsVisibility;

/// Messages in one call.
pub const BATCH_COUNT: usize = 10;
/// Bytes of a message, and of all messages of a call.
pub const BYTES: usize = 1024 * 1024;
/// The same until August 2025, and still in some emulators and private regions.
pub const SMALL_BYTES: usize = 256 * 1024;
/// The longest delay of a message.
pub const DELAY_SECONDS: u32 = 900;

/// A queue.
#[derive(Debug)]
pub struct SqsChannel {
    client: Client,
    queue: Queue,
    called: String,
    url: OnceCell<String>,
    bytes: usize,
    tenants: bool,
}

impl SqsChannel {
    /// The queue with this name, URL or ARN. A URL or ARN of another region is
    /// called there. Nothing is asked of the service before the first message.
    pub fn new(client: &Client, queue: &str) -> SqsChannel {
        let called = format!("SQS {queue}");
        let queue = Queue::parse(queue);
        let config = client.config();
        let here = config.region().map(Region::as_ref);
        let client = match queue.region() {
            Some(region) if here != Some(region) => {
                let there = Region::new(region.to_owned());
                Client::from_conf(config.to_builder().region(there).build())
            }
            _ => client.clone(),
        };
        SqsChannel {
            client,
            queue,
            called,
            url: OnceCell::new(),
            bytes: BYTES,
            tenants: false,
        }
    }

    /// Whether the tenants of messages are told to a standard queue. SQS takes them since July 2025;
    /// emulators refuse such messages.
    #[must_use]
    pub fn with_tenants(self, tenants: bool) -> SqsChannel {
        SqsChannel { tenants, ..self }
    }

    /// Another size limit, such as [`SMALL_BYTES`].
    #[must_use]
    pub fn with_bytes(self, bytes: usize) -> SqsChannel {
        SqsChannel { bytes, ..self }
    }

    /// The queue's URL, asked for once; a failure is not kept.
    async fn url(&self) -> Result<&str, SendError> {
        let ask = || async {
            let (name, account) = match &self.queue {
                Queue::Url { url, .. } => return Ok(url.clone()),
                Queue::Name(name) => (name, None),
                Queue::Arn { name, account, .. } => (name, Some(account.clone())),
            };
            let call = self.client.get_queue_url().queue_name(name);
            match call.set_queue_owner_aws_account_id(account).send().await {
                Ok(answer) => answer
                    .queue_url
                    .ok_or_else(|| SendError::Retry(format!("{}: no URL", self.called))),
                Err(error) => Err(sdk_error(&self.called, &error)),
            }
        };
        self.url.get_or_try_init(ask).await.map(String::as_str)
    }

    async fn send_batch(&self, messages: &[Message]) -> Vec<Sent> {
        let mut batch = Batch::of(&self.called, messages);
        let entries = batch.entries(|id, message| self.entry(id, message));
        if entries.is_empty() {
            return batch.results();
        }
        let url = match self.url().await {
            Ok(url) => url,
            Err(error) => return batch.fail(&error),
        };
        let call = self.client.send_message_batch().queue_url(url);
        let answer = match call.set_entries(Some(entries)).send().await {
            Ok(answer) => answer,
            Err(error) => return batch.fail(&sdk_error(&self.called, &error)),
        };
        for sent in answer.successful() {
            batch.settle(sent.id(), Ok(()));
        }
        for refused in answer.failed() {
            let (code, message) = (refused.code(), refused.message());
            let error = entry_error(&self.called, code, message, refused.sender_fault());
            batch.settle(refused.id(), Err(error));
        }
        batch.results()
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
            // A group on a standard queue orders nothing: it makes the queue a fair one.
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

impl Channel for SqsChannel {
    fn limits(&self) -> ChannelLimits {
        ChannelLimits {
            batch_count: BATCH_COUNT,
            batch_bytes: self.bytes,
            message_bytes: self.bytes,
        }
    }

    fn send<'a>(&'a self, messages: &'a [Message]) -> BoxFuture<'a, Vec<Sent>> {
        Box::pin(self.send_batch(messages))
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
    let taken = batch::attributes(message)?.into_iter().map(text);
    let taken: Attributes = taken.collect::<Result<_, String>>()?;
    Ok((!taken.is_empty()).then_some(taken))
}

fn delay(message: &Message) -> Result<Option<i32>, String> {
    match message.delay_seconds {
        Some(delay) if delay > DELAY_SECONDS => Err(format!(
            "the delay is {delay} seconds, the limit is {DELAY_SECONDS}"
        )),
        delay => Ok(delay.and_then(|delay| i32::try_from(delay).ok())),
    }
}
