//! Topics of SNS, standard and FIFO, by `PublishBatch`.
//!
//! The role needs `sns:Publish`. A topic whose name ends in `.fifo` gets the
//! message's key as its group and the notification's id for deduplication, as a
//! queue does.

use antumbra_service::notifications::{BoxFuture, Channel, ChannelLimits, Message};
use aws_sdk_sns::Client;
use aws_sdk_sns::config::Region;
use aws_sdk_sns::types::{MessageAttributeValue, PublishBatchRequestEntry};

use crate::arn::Arn;
use crate::batch::{self, Batch, Sent};
use crate::classify::{entry_error, sdk_error};
use crate::ids::{deduplication_id, group_id};

/// Messages in one call.
pub const BATCH_COUNT: usize = 10;
/// Bytes of a message, and of all messages of a call, unless the topic says otherwise.
pub const BYTES: usize = 256 * 1024;
/// The most a topic can allow with its attribute `MaximumMessageSize`.
pub const LARGE_BYTES: usize = 1024 * 1024;

/// A topic.
#[derive(Debug)]
pub struct SnsChannel {
    client: Client,
    topic: String,
    called: String,
    bytes: usize,
}

impl SnsChannel {
    /// The topic with this ARN, called in the region it is in.
    pub fn new(client: &Client, topic: &str) -> SnsChannel {
        let config = client.config();
        let here = config.region().map(Region::as_ref);
        let client = match Arn::of("sns", topic) {
            Some(arn) if here != Some(arn.region) => {
                let there = Region::new(arn.region.to_owned());
                Client::from_conf(config.to_builder().region(there).build())
            }
            _ => client.clone(),
        };
        SnsChannel {
            client,
            topic: topic.to_owned(),
            called: format!("SNS {topic}"),
            bytes: BYTES,
        }
    }

    /// Another size limit, up to [`LARGE_BYTES`] for a topic that allows it.
    #[must_use]
    pub fn with_bytes(self, bytes: usize) -> SnsChannel {
        SnsChannel { bytes, ..self }
    }

    async fn send_batch(&self, messages: &[Message]) -> Vec<Sent> {
        let mut batch = Batch::of(&self.called, messages);
        let entries = batch.entries(|id, message| self.entry(id, message));
        if entries.is_empty() {
            return batch.results();
        }
        let call = self.client.publish_batch().topic_arn(&self.topic);
        let answer = match call
            .set_publish_batch_request_entries(Some(entries))
            .send()
            .await
        {
            Ok(answer) => answer,
            Err(error) => return batch.fail(&sdk_error(&self.called, &error)),
        };
        for sent in answer.successful() {
            batch.settle(sent.id().unwrap_or_default(), Ok(()));
        }
        for refused in answer.failed() {
            let (code, message) = (refused.code(), refused.message());
            let error = entry_error(&self.called, code, message, refused.sender_fault());
            batch.settle(refused.id(), Err(error));
        }
        batch.results()
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

impl Channel for SnsChannel {
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
