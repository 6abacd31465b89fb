//! Event buses of EventBridge, by `PutEvents`.
//!
//! The role needs `events:PutEvents`. The body is the detail, the source is
//! always [`SOURCE`]. A bus keeps no order and knows no attributes: what rules
//! filter by is in the detail.

use antumbra_service::notifications::{BoxFuture, Channel, ChannelLimits, Message};
use aws_sdk_eventbridge::Client;
use aws_sdk_eventbridge::config::Region;
use aws_sdk_eventbridge::types::PutEventsRequestEntry;

use crate::arn::Arn;
use crate::batch::{self, Batch, Sent};
use crate::classify::{entry_error, sdk_error};

/// What every entry of ours comes from.
pub const SOURCE: &str = "antumbra";
/// Entries in one call.
pub const BATCH_COUNT: usize = 10;
/// Bytes of all entries of a call.
pub const BYTES: usize = 1024 * 1024;
/// The same until January 2026, and still in some emulators and partitions.
pub const SMALL_BYTES: usize = 256 * 1024;
/// The most an entry counts besides its detail: the source, and a detail type of 128 characters of
/// four bytes at most, with some to spare.
const ENVELOPE_BYTES: usize = 1024;

/// A bus.
#[derive(Debug)]
pub struct EventBridgeChannel {
    client: Client,
    bus: String,
    called: String,
    bytes: usize,
}

impl EventBridgeChannel {
    /// The bus with this name or ARN; one with an ARN is called in its region.
    pub fn new(client: &Client, bus: &str) -> EventBridgeChannel {
        let config = client.config();
        let here = config.region().map(Region::as_ref);
        let client = match Arn::of("events", bus) {
            Some(arn) if here != Some(arn.region) => {
                let there = Region::new(arn.region.to_owned());
                Client::from_conf(config.to_builder().region(there).build())
            }
            _ => client.clone(),
        };
        EventBridgeChannel {
            client,
            bus: bus.to_owned(),
            called: format!("EventBridge {bus}"),
            bytes: BYTES,
        }
    }

    /// Another size limit, such as [`SMALL_BYTES`].
    #[must_use]
    pub fn with_bytes(self, bytes: usize) -> EventBridgeChannel {
        EventBridgeChannel { bytes, ..self }
    }

    async fn send_batch(&self, messages: &[Message]) -> Vec<Sent> {
        let mut batch = Batch::of(&self.called, messages);
        let made = batch.entries(|id, message| Ok((id, self.entry(message)?)));
        if made.is_empty() {
            return batch.results();
        }
        let (ids, entries): (Vec<_>, Vec<_>) = made.into_iter().unzip();
        let call = self.client.put_events().set_entries(Some(entries));
        let answer = match call.send().await {
            Ok(answer) => answer,
            Err(error) => return batch.fail(&sdk_error(&self.called, &error)),
        };
        // The answer's entries have no ids; they stand in the order of the request's.
        for (id, entry) in ids.iter().zip(answer.entries()) {
            let sent = match (entry.event_id(), entry.error_code()) {
                (Some(_), None) => Ok(()),
                // Nobody says whose fault it is. What passes is named; the rest is not worth a retry.
                (_, Some(code)) => {
                    Err(entry_error(&self.called, code, entry.error_message(), true))
                }
                (None, None) => continue,
            };
            batch.settle(id, sent);
        }
        batch.results()
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

impl Channel for EventBridgeChannel {
    fn limits(&self) -> ChannelLimits {
        ChannelLimits {
            batch_count: BATCH_COUNT,
            batch_bytes: self.bytes.saturating_sub(BATCH_COUNT * ENVELOPE_BYTES),
            message_bytes: self.bytes.saturating_sub(BATCH_COUNT * ENVELOPE_BYTES),
        }
    }

    fn send<'a>(&'a self, messages: &'a [Message]) -> BoxFuture<'a, Vec<Sent>> {
        Box::pin(self.send_batch(messages))
    }
}
