//! SQS, SNS and event buses of EventBridge for the local stack, behind the wire protocols of AWS.
//!
//! - [`queue`]: one queue, pure, shared with the simulation
//! - [`Queues`]: all queues and topics, their journal and long polling
//! - [`sqs`], [`sns`] and [`eventbridge`]: the operations over HTTP
//!
//! With a data directory everything survives a restart, also after a kill of the process: messages, their
//! visibility and receive counts, delays and deduplication ids. Not emulated: access policies, encryption, subscriptions
//! other than SQS, delivery retries of a topic, signatures of notifications, rules of a bus.

mod error;
pub mod eventbridge;
mod journal;
pub mod queue;
mod service;
pub mod sns;
pub mod sqs;
mod topics;
mod unkind;

pub use error::ApiError;
pub use service::{INTERNAL, Queues, QueuesConfig};
pub use unkind::Unkindness;
