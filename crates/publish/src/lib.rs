//! Sending to the outside: channels to AWS services, and webhooks.
//!
//! - [`channels`]: the port [`Channel`](antumbra_service::notifications::Channel) for SQS, SNS, EventBridge and AWS
//!   IoT, and [`AwsChannelFactory`], which opens the channel of a registration's target
//! - `classify`: which failures are worth a retry
//! - [`SqsVisibility`]: hides a received message until its next attempt
//! - [`SqsFailedQueue`]: failed messages and their redrive
//! - [`LazyClient`]: a client of an AWS service that its first call creates
//! - [`webhook`]: signed POSTs to the URLs of clients
//!
//! Nothing here decides what is sent or when it is tried again, and nothing reads the environment.

pub mod channels;
mod classify;
mod failed_queue;
mod lazy;
mod visibility;
pub mod webhook;

pub use channels::eventbridge::EventBridgeChannel;
pub use channels::iot::IotChannel;
pub use channels::sns::SnsChannel;
pub use channels::sqs::SqsChannel;
pub use channels::{
    AwsChannelFactory, ChannelOptions, DeliveryQueues, deduplication_id, eventbridge, group_id,
    iot, sns, sqs,
};
pub use failed_queue::{QueueDepth, SqsFailedQueue, queue_error, queue_url};
pub use lazy::LazyClient;
pub use visibility::SqsVisibility;
pub use webhook::WebhookSender;
