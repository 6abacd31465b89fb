//! Webhook deliver: what occurred at sensors, from the deliveries queues to clients' endpoints.
//!
//! [`Worker::handle`] takes the bytes of an SQS event and takes each message's turn
//! ([`antumbra_service::deliveries`]). A message that is done with is claimed done; for any other the
//! queue is told when to hand it over again, and it is reported failed. The queue counts the turns: after
//! the last one it moves the message to its dead letters by itself.

mod config;
mod summary;
mod worker;

pub use config::Config;
pub use summary::BatchSummary;
pub use worker::Worker;

/// The function's name, in metrics and on the local stack.
pub const NAME: &str = "webhook-deliver";
