//! DynamoDB and its streams in one process: the embedded engine (dynoxide), and the protocol in front of it.
//!
//! - [`Engine`]: executes operations, one after the other; [`router`] serves them over HTTP
//! - [`StreamReader`]: stream records as text, for the event sources of this process
//! - [`checkpoints`]: keeps the log of a file short while requests go on
//! - [`delete_read_records`]: what an earlier run has left in the streams
//!
//! The tables are those of [`antumbra_dynamodb::TableDefinition`]. Nothing here is meant for production.

mod batch;
mod engine;
mod idempotency;
mod operations;
mod records;
mod stream_records;
mod wal;

pub use engine::Engine;
pub use operations::router;
pub use records::{Record, RecordPage, StreamReader, invocation};
pub use stream_records::delete_read_records;
pub use wal::{Checkpointer, checkpoints};

/// Region in the events of streams.
pub const REGION: &str = "us-east-1";
