//! Webhook deliver: sends deliveries from the deliveries queues to clients' endpoints.
//!
//! [`Worker`] makes one delivery attempt per message of an SQS event, all at the same time
//! ([`antumbra_service::deliveries`]). A message whose delivery is settled, or waits in the due index, succeeds. One
//! whose next attempt follows soon is hidden in the queue and reported as a batch item failure. One that names no known
//! delivery is quarantined.

mod config;
mod worker;

use std::sync::Arc;

use antumbra_dynamodb::DynamoDbDeliveries;
use antumbra_lambda_kit::certificates;
use antumbra_publish::webhook::Guard;
use antumbra_publish::{LazyClient, SqsChannel, SqsVisibility, WebhookSender};
use antumbra_service::clock::Clock;
use antumbra_service::deliveries::{DeadLetters, Deliver, Queues, Sender};
use antumbra_service::quarantine::Quarantine;
use aws_types::SdkConfig;

pub use config::Config;
pub use worker::{COUNTERS, Worker};

pub const NAME: &str = "webhook-deliver";

pub fn build(
    config: Config,
    sdk: &SdkConfig,
    clock: Arc<dyn Clock>,
) -> Worker<DynamoDbDeliveries, WebhookSender, SqsVisibility> {
    let guard = Guard::new(config.allow.clone());
    let sender = WebhookSender::new(certificates::tls(), guard).with_timeout(config.timeout);
    build_with_sender(config, sdk, sender, clock)
}

/// Wires the function with another sender of HTTP requests.
pub fn build_with_sender<S: Sender>(
    config: Config,
    sdk: &SdkConfig,
    sender: S,
    clock: Arc<dyn Clock>,
) -> Worker<DynamoDbDeliveries, S, SqsVisibility> {
    let sqs = LazyClient::sqs(sdk);
    let queue = |url: &str| Arc::new(SqsChannel::new(&sqs, url).with_tenants(config.tenants));
    let queues = Queues {
        ordered: queue(&config.fifo_queue_url),
        unordered: queue(&config.queue_url),
    };
    let name = |url: &str| url.rsplit('/').next().unwrap_or_default().to_owned();
    let dead_letters = DeadLetters {
        queues: Queues {
            ordered: queue(&config.dead_fifo_queue_url),
            unordered: queue(&config.dead_queue_url),
        },
        ordered_source: name(&config.fifo_queue_url),
        unordered_source: name(&config.queue_url),
    };
    let quarantine = Quarantine::new(queue(&config.quarantine_queue_url));
    let store = DynamoDbDeliveries::connect(sdk, config.table).with_retention(config.retention);
    let deliver = Deliver::new(store, sender, queues, dead_letters, clock, config.policy);
    let urls = [config.fifo_queue_url, config.queue_url];
    let visibility = SqsVisibility::new(&sqs, urls);
    Worker::new(deliver, visibility, quarantine)
}
