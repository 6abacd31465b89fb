//! Message ingest: what somebody dropped in a queue, to the inbox.
//!
//! [`Ingest::handle`] takes the bytes of an SQS event and answers which messages are to be delivered
//! again. It decides first (`plan`, pure), then stores, then puts away what can never be stored, and only
//! then answers: a message is claimed done when it lies in the inbox or in the quarantine. It never deletes
//! from the queue; that is for whoever called.

mod config;
mod ingest;
mod plan;
mod summary;

pub use config::Config;
pub use ingest::Ingest;
pub use summary::BatchSummary;

/// The function's name, in metrics and on the local stack.
pub const NAME: &str = "message-ingest";
