//! Message ingest: moves messages from the inbound queue to the inbox.
//!
//! [`Ingest`] parses the messages of an SQS event, stores them, sends those that can never be stored to the
//! quarantine, and reports the rest as batch item failures. A message counts as processed only when it is
//! in the inbox or in the quarantine.

mod config;
mod ingest;

use std::sync::Arc;

use antumbra_dynamodb::DynamoDbInbox;
use antumbra_publish::{LazyClient, SqsChannel};
use antumbra_service::clock::Clock;
use antumbra_service::quarantine::Quarantine;
use aws_types::SdkConfig;

pub use config::Config;
pub use ingest::{COUNTERS, Ingest};

pub const NAME: &str = "message-ingest";

pub fn build(
    config: Config,
    sdk: &SdkConfig,
    clock: Arc<dyn Clock>,
) -> Ingest<DynamoDbInbox, DynamoDbInbox> {
    let quarantine = SqsChannel::new(LazyClient::sqs(sdk), &config.quarantine_queue_url)
        .with_bytes(config.queue_bytes);
    let inbox = DynamoDbInbox::connect(sdk, config.table);
    Ingest::new(
        inbox.clone(),
        inbox,
        Quarantine::new(Arc::new(quarantine)),
        config.parser,
        clock,
    )
}
