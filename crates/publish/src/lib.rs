//! Where notifications go: one file for each outside system, all of them the
//! port [`Channel`](antumbra_service::notifications::Channel).
//!
//! Reading order: `classify` says what a failure means, `ids`, `text` and
//! `topic` hold the services' rules for names, `batch` keeps the results of a
//! call in order; then the systems themselves: [`sqs`], [`sns`],
//! [`eventbridge`] and [`iot`]; and [`webhook`], which is no channel: it
//! sends one request at a time to whichever URL a client has.
//!
//! Nothing here decides what is sent or when it is tried again, and nothing
//! reads the environment: clients come in ready made.

mod arn;
mod batch;
mod classify;
mod factory;
mod ids;
mod text;
mod topic;

pub mod eventbridge;
pub mod iot;
pub mod sns;
pub mod sqs;
pub mod webhook;

pub use eventbridge::EventBridgeChannel;
pub use factory::AwsChannelFactory;
pub use ids::{deduplication_id, group_id};
pub use iot::IotChannel;
pub use sns::SnsChannel;
pub use sqs::{SqsChannel, SqsVisibility};
pub use webhook::WebhookSender;
