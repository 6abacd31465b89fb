//! Queues of failed messages on SQS. The caller needs `sqs:ReceiveMessage`, `sqs:DeleteMessage`,
//! `sqs:ChangeMessageVisibility` and `sqs:SendMessage`, for [`SqsFailedQueue::depth`] `sqs:GetQueueAttributes`, and for
//! queues that are not given by URL `sqs:GetQueueUrl`.

use antumbra_registration::Queue;
use antumbra_service::redrive::{Attribute, FailedMessage, FailedQueue, QueueError};
use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_sqs::primitives::Blob;
use aws_sdk_sqs::types::{
    ChangeMessageVisibilityBatchRequestEntry, Message, MessageAttributeValue,
    MessageSystemAttributeName as System, QueueAttributeName,
};
use futures_util::future::try_join_all;

use crate::channels::sqs::BATCH_COUNT;
use crate::classify::with_causes;

/// Visibility timeout of received messages in seconds. After a crash they reappear by then.
const VISIBILITY_SECONDS: i32 = 120;
/// Wait for a first message. A long poll asks all servers of the queue: an empty response means an empty queue.
const LONG_POLL_SECONDS: i32 = 1;
/// Calls at once that make messages visible again.
const CONCURRENT_RELEASES: usize = 8;
/// Maximum length of a deduplication id.
const DEDUPLICATION_CHARS: usize = 128;

#[derive(Debug, Clone)]
pub struct SqsFailedQueue {
    client: Client,
    pub url: String,
}

impl SqsFailedQueue {
    /// Finds a queue by name, URL or ARN.
    pub async fn open(client: &Client, queue: &str) -> Result<SqsFailedQueue, QueueError> {
        Ok(SqsFailedQueue {
            url: queue_url(client, queue).await?,
            client: client.clone(),
        })
    }

    pub fn name(&self) -> &str {
        self.url.rsplit('/').next().unwrap_or_default()
    }

    /// Returns about how many messages the queue holds.
    pub async fn depth(&self) -> Result<QueueDepth, QueueError> {
        use QueueAttributeName::{
            ApproximateNumberOfMessages as Visible, ApproximateNumberOfMessagesDelayed as Delayed,
            ApproximateNumberOfMessagesNotVisible as Hidden,
        };
        let call = self.client.get_queue_attributes().queue_url(&self.url);
        let call = call.attribute_names(Visible);
        let call = call.attribute_names(Delayed).attribute_names(Hidden);
        let response = call.send().await.map_err(|error| queue_error(&error))?;
        let attributes = response.attributes.unwrap_or_default();
        let count = |name| -> u64 {
            let count = attributes.get(&name).and_then(|count| count.parse().ok());
            count.unwrap_or_default()
        };
        Ok(QueueDepth {
            visible: count(Visible),
            hidden: count(Hidden) + count(Delayed),
        })
    }

    async fn receive_within(&self, seconds: i32) -> Result<Vec<FailedMessage>, QueueError> {
        let call = self.client.receive_message().queue_url(&self.url);
        let response = call
            .max_number_of_messages(BATCH_COUNT as i32)
            .visibility_timeout(VISIBILITY_SECONDS)
            .wait_time_seconds(seconds)
            .message_attribute_names("All")
            .message_system_attribute_names(System::All)
            .send()
            .await
            .map_err(|error| queue_error(&error))?;
        let received = response.messages.unwrap_or_default().into_iter();
        Ok(received.map(failed_message).collect())
    }

    async fn release_batch(&self, receipts: &[String]) -> Result<(), QueueError> {
        let entries = receipts.iter().enumerate().map(|(at, receipt)| {
            ChangeMessageVisibilityBatchRequestEntry::builder()
                .id(at.to_string())
                .receipt_handle(receipt)
                .visibility_timeout(0)
                .build()
                .map_err(|error| QueueError::Failed(error.to_string()))
        });
        let call = self.client.change_message_visibility_batch();
        call.queue_url(&self.url)
            .set_entries(Some(entries.collect::<Result<_, _>>()?))
            .send()
            .await
            .map_err(|error| queue_error(&error))?;
        Ok(())
    }
}

/// About how many messages a queue holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueDepth {
    /// Messages that can be received.
    pub visible: u64,
    /// Messages that were received a moment ago or are delayed.
    pub hidden: u64,
}

impl FailedQueue for SqsFailedQueue {
    fn is_fifo(&self) -> bool {
        self.url.ends_with(".fifo")
    }

    async fn receive(&self) -> Result<Vec<FailedMessage>, QueueError> {
        self.receive_within(LONG_POLL_SECONDS).await
    }

    async fn receive_counted(&self) -> Result<Vec<FailedMessage>, QueueError> {
        let received = self.receive_within(0).await?;
        if !received.is_empty() {
            return Ok(received);
        }
        match self.depth().await {
            Ok(depth) if depth.visible == 0 => Ok(received),
            // The short poll has missed messages, or the caller may not read the count.
            _ => self.receive().await,
        }
    }

    async fn release(&self, receipts: &[String]) -> Result<(), QueueError> {
        let batches: Vec<&[String]> = receipts.chunks(BATCH_COUNT).collect();
        for some in batches.chunks(CONCURRENT_RELEASES) {
            try_join_all(some.iter().map(|batch| self.release_batch(batch))).await?;
        }
        Ok(())
    }

    async fn delete(&self, receipt: &str) -> Result<(), QueueError> {
        let call = self.client.delete_message().queue_url(&self.url);
        let deleted = call.receipt_handle(receipt).send().await;
        deleted.map(drop).map_err(|error| queue_error(&error))
    }

    async fn send(&self, message: &FailedMessage, queue: &str) -> Result<(), QueueError> {
        let url = queue_url(&self.client, queue).await?;
        let fifo = url.ends_with(".fifo");
        let mut call = self
            .client
            .send_message()
            .queue_url(url)
            .message_body(&message.body);
        for (name, attribute) in &message.attributes {
            let value = MessageAttributeValue::builder()
                .data_type(&attribute.data_type)
                .set_string_value(attribute.text.clone())
                .set_binary_value(attribute.bytes.clone().map(Blob::new))
                .build()
                .map_err(|error| QueueError::Failed(error.to_string()))?;
            call = call.message_attributes(name, value);
        }
        if fifo {
            let group = message.group.as_deref().unwrap_or(&message.id);
            // The original deduplication id would make SQS drop the message for five minutes. This one is new,
            // and the same for every attempt.
            let original = message.deduplication.as_deref().unwrap_or_default();
            let mut id = format!("{}.{original}", message.id);
            id.truncate(DEDUPLICATION_CHARS);
            call = call.message_group_id(group).message_deduplication_id(id);
        }
        let sent = call.send().await;
        sent.map(drop).map_err(|error| queue_error(&error))
    }
}

fn failed_message(message: Message) -> FailedMessage {
    let mut system = message.attributes.unwrap_or_default();
    let sent = system.remove(&System::SentTimestamp);
    let attributes = message.message_attributes.unwrap_or_default().into_iter();
    let attribute = |value: MessageAttributeValue| Attribute {
        data_type: value.data_type,
        text: value.string_value,
        bytes: value.binary_value.map(Blob::into_inner),
    };
    FailedMessage {
        id: message.message_id.unwrap_or_default(),
        receipt: message.receipt_handle.unwrap_or_default(),
        body: message.body.unwrap_or_default(),
        attributes: attributes
            .map(|(name, value)| (name, attribute(value)))
            .collect(),
        dead_letter_of: system.remove(&System::DeadLetterQueueSourceArn),
        group: system.remove(&System::MessageGroupId),
        deduplication: system.remove(&System::MessageDeduplicationId),
        sent_milliseconds: sent.and_then(|text| text.parse().ok()).unwrap_or_default(),
    }
}

/// Finds the URL of a queue by its name, URL or ARN.
pub async fn queue_url(client: &Client, queue: &str) -> Result<String, QueueError> {
    let parsed = Queue::parse(queue);
    if let Queue::Url(url) = parsed {
        return Ok(url);
    }
    let call = client.get_queue_url().queue_name(parsed.name());
    let call = call.set_queue_owner_aws_account_id(parsed.account().map(str::to_owned));
    let found = call
        .send()
        .await
        .map_err(|error| match error.as_service_error() {
            Some(reason) if reason.is_queue_does_not_exist() => {
                QueueError::NotFound(queue.to_owned())
            }
            _ => queue_error(&error),
        })?;
    let missing = || QueueError::Failed(format!("no URL for the queue {queue}"));
    found.queue_url.ok_or_else(missing)
}

/// Classifies the error of a call to SQS.
pub fn queue_error<E>(error: &SdkError<E>) -> QueueError
where
    E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
{
    QueueError::Failed(match error {
        SdkError::DispatchFailure(failure) if failure.is_io() || failure.is_timeout() => {
            return QueueError::NoConnection;
        }
        SdkError::TimeoutError(_) => "the call timed out".to_owned(),
        SdkError::ResponseError(_) => "the response could not be parsed".to_owned(),
        SdkError::ServiceError(failed) if error.code().is_none() => {
            let status = failed.raw().status().as_u16();
            format!("the response, with HTTP status {status}, is not one of SQS")
        }
        SdkError::ServiceError(_) => match (error.code(), error.message()) {
            (Some(code), Some(message)) => format!("{code}: {message}"),
            (code, message) => code.or(message).unwrap_or("service error").to_owned(),
        },
        _ => with_causes(error),
    })
}
