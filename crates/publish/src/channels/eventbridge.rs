//! Event buses of EventBridge, by `PutEvents`.
//!
//! The role needs `events:PutEvents`. The body is the detail, the source is always [`SOURCE`]. A bus keeps no order
//! and has no attributes; rules filter by the detail.

use std::sync::Arc;

use antumbra_registration::Arn;
use antumbra_registration::target::EventBridge;
use antumbra_service::notifications::{Channel, ChannelLimits, Message};
use async_trait::async_trait;
use aws_sdk_eventbridge::Client;
use aws_sdk_eventbridge::types::PutEventsRequestEntry;

use super::batch::{self, Batch, CONCURRENT_BATCHES, Sent};
use super::{AwsChannelFactory, client_in_region};
use crate::LazyClient;
use crate::classify::{entry_error, sdk_error};

pub const SOURCE: &str = "antumbra";
pub const BATCH_COUNT: usize = 10;
/// Maximum bytes of all entries of a call.
pub const BYTES: usize = 1024 * 1024;
/// The limit until January 2026, and of some emulators and partitions.
pub const SMALL_BYTES: usize = 256 * 1024;
/// Upper bound of an entry's size without its detail: the source and a detail type of 128 characters of four bytes.
const ENVELOPE_BYTES: usize = 1024;

pub(super) fn open(target: &EventBridge, factory: &AwsChannelFactory) -> Arc<dyn Channel> {
    Arc::new(EventBridgeChannel::new(&factory.eventbridge, &target.bus))
}

#[derive(Debug)]
pub struct EventBridgeChannel {
    client: LazyClient<Client>,
    bus: String,
    label: String,
    bytes: usize,
}

impl EventBridgeChannel {
    /// Opens the bus with this name or ARN, in the region of the ARN.
    pub fn new(client: impl Into<LazyClient<Client>>, bus: &str) -> EventBridgeChannel {
        let region = Arn::parse("events", bus).map(|arn| arn.region);
        EventBridgeChannel {
            client: client_in_region!(client, region),
            bus: bus.to_owned(),
            label: format!("EventBridge {bus}"),
            bytes: BYTES,
        }
    }

    #[must_use]
    pub fn with_bytes(self, bytes: usize) -> EventBridgeChannel {
        EventBridgeChannel { bytes, ..self }
    }

    fn entry(&self, message: &Message) -> Result<PutEventsRequestEntry, String> {
        batch::check_size(message, self.limits())?;
        let detail_type = message.detail_type.as_deref();
        let detail_type = detail_type.filter(|text| !text.is_empty());
        let detail_type = detail_type.ok_or("the message has no detail type")?;
        Ok(PutEventsRequestEntry::builder()
            .source(SOURCE)
            .detail_type(detail_type)
            .detail(&message.body)
            .event_bus_name(&self.bus)
            .build())
    }
}

#[async_trait]
impl Channel for EventBridgeChannel {
    fn limits(&self) -> ChannelLimits {
        ChannelLimits {
            batch_count: BATCH_COUNT,
            batch_bytes: self.bytes.saturating_sub(BATCH_COUNT * ENVELOPE_BYTES),
            message_bytes: self.bytes.saturating_sub(BATCH_COUNT * ENVELOPE_BYTES),
        }
    }

    fn concurrent_calls(&self) -> usize {
        CONCURRENT_BATCHES
    }

    async fn send(&self, messages: &[Message]) -> Vec<Sent> {
        let mut batch = Batch::new(&self.label, messages);
        let entries = batch.entries(|id, message| Ok((id, self.entry(message)?)));
        if entries.is_empty() {
            return batch.results();
        }
        let (ids, entries): (Vec<_>, Vec<_>) = entries.into_iter().unzip();
        let call = self.client.put_events().set_entries(Some(entries));
        let response = match call.send().await {
            Ok(response) => response,
            Err(error) => return batch.fail(&sdk_error(&self.label, &error)),
        };
        // Entries of the response have no ids; they have the order of the request.
        for (id, entry) in ids.iter().zip(response.entries()) {
            let sent = match (entry.event_id(), entry.error_code()) {
                (Some(_), None) => Ok(()),
                // The response does not say whose fault it is: codes that are not known as temporary are permanent.
                (_, Some(code)) => Err(entry_error(&self.label, code, entry.error_message(), true)),
                (None, None) => continue,
            };
            batch.settle(id, sent);
        }
        batch.results()
    }
}
