//! Topics of SNS, standard and FIFO, by `PublishBatch`.
//!
//! The role needs `sns:Publish`. FIFO topics get the message's key as group and the notification's id as
//! deduplication id, like FIFO queues.

use std::sync::Arc;

use antumbra_registration::Arn;
use antumbra_registration::target::Sns;
use antumbra_service::notifications::{Channel, ChannelLimits, Message};
use async_trait::async_trait;
use aws_sdk_sns::Client;
use aws_sdk_sns::types::{MessageAttributeValue, PublishBatchRequestEntry};

use super::batch::{self, Batch, CONCURRENT_BATCHES, Sent};
use super::ids::{deduplication_id, group_id};
use super::{AwsChannelFactory, client_in_region};
use crate::LazyClient;
use crate::classify::{entry_error, sdk_error};

pub const BATCH_COUNT: usize = 10;
/// Maximum bytes of a message, and of all messages of a call.
pub const BYTES: usize = 256 * 1024;

pub(super) fn open(target: &Sns, factory: &AwsChannelFactory) -> Arc<dyn Channel> {
    Arc::new(SnsChannel::new(&factory.sns, &target.topic))
}

#[derive(Debug)]
pub struct SnsChannel {
    client: LazyClient<Client>,
    topic: String,
    label: String,
}

impl SnsChannel {
    /// Opens the topic with this ARN, in its region.
    pub fn new(client: impl Into<LazyClient<Client>>, topic: &str) -> SnsChannel {
        let region = Arn::parse("sns", topic).map(|arn| arn.region);
        SnsChannel {
            client: client_in_region!(client, region),
            topic: topic.to_owned(),
            label: format!("SNS {topic}"),
        }
    }

    fn entry(&self, id: String, message: &Message) -> Result<PublishBatchRequestEntry, String> {
        batch::check_size(message, self.limits())?;
        let mut entry = PublishBatchRequestEntry::builder()
            .id(id)
            .message(batch::body(message)?)
            .set_subject(message.subject.clone());
        for (name, value) in batch::attributes(message)? {
            let value = MessageAttributeValue::builder()
                .data_type("String")
                .string_value(value)
                .build()
                .map_err(|error| error.to_string())?;
            entry = entry.message_attributes(name, value);
        }
        if self.topic.ends_with(".fifo") {
            entry = entry
                .message_group_id(group_id(&message.key))
                .message_deduplication_id(deduplication_id(&message.id));
        }
        entry.build().map_err(|error| error.to_string())
    }
}

#[async_trait]
impl Channel for SnsChannel {
    fn limits(&self) -> ChannelLimits {
        ChannelLimits {
            batch_count: BATCH_COUNT,
            batch_bytes: BYTES,
            message_bytes: BYTES,
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
        let call = self.client.publish_batch().topic_arn(&self.topic);
        let response = match call
            .set_publish_batch_request_entries(Some(entries))
            .send()
            .await
        {
            Ok(response) => response,
            Err(error) => return batch.fail(&sdk_error(&self.label, &error)),
        };
        for sent in response.successful() {
            batch.settle(sent.id().unwrap_or_default(), Ok(()));
        }
        for failed in response.failed() {
            let (code, message) = (failed.code(), failed.message());
            let error = entry_error(&self.label, code, message, failed.sender_fault());
            batch.settle(failed.id(), Err(error));
        }
        batch.results()
    }
}
