//! Webhook deliver: sends deliveries from the deliveries queues to clients' endpoints.
//!
//! [`Worker`] makes one delivery attempt per message of an SQS event ([`antumbra_service::deliveries`]). A
//! message whose delivery is settled succeeds. Any other is hidden in the queue until its next attempt and
//! reported as a batch item failure; after the last attempt the queue moves it to its dead-letter queue.

#![allow(missing_docs)]

mod config;
mod worker;

use std::sync::Arc;

use antumbra_dynamodb::DynamoDbDeliveries;
use antumbra_lambda_kit::certificates;
use antumbra_publish::webhook::Guard;
use antumbra_publish::{SqsVisibility, WebhookSender};
use antumbra_service::clock::Clock;
use antumbra_service::deliveries::{Deliver, Sender};
use aws_types::SdkConfig;

pub use config::Config;
pub use worker::{COUNTERS, Worker};

/// Name of the function.
pub const NAME: &str = "webhook-deliver";

/// Wires the function.
pub fn build(
    config: Config,
    sdk: &SdkConfig,
    clock: Arc<dyn Clock>,
) -> Worker<DynamoDbDeliveries, WebhookSender, SqsVisibility> {
    let guard = Guard::new(config.allow.clone());
    let sender = WebhookSender::trusting(certificates::roots(), guard).with_timeout(config.timeout);
    build_with_sender(config, sdk, sender, clock)
}

/// Wires the function with another sender of HTTP requests.
pub fn build_with_sender<S: Sender>(
    config: Config,
    sdk: &SdkConfig,
    sender: S,
    clock: Arc<dyn Clock>,
) -> Worker<DynamoDbDeliveries, S, SqsVisibility> {
    let store = DynamoDbDeliveries::connect(sdk, config.table).with_retention(config.retention);
    let deliver = Deliver::new(store, sender, clock, config.policy);
    let queues = [config.fifo_queue_url, config.queue_url];
    Worker::new(
        deliver,
        SqsVisibility::new(aws_sdk_sqs::Client::new(sdk), queues),
    )
}
