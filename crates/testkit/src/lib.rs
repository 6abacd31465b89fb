//! What tests share. A dev-dependency, never more.
//!
//! - [`contract`]: the laws of the shadow persistence as tests, run on every implementation by
//!   [`shadow_contract!`]
//! - [`sample`]: shadows, documents and writes in few words
//! - [`sensors`]: sensors in memory, and the laws of their ports
//! - [`writers`]: many writers at once through the SDK, on a store that fails
//! - [`lambda`]: the binary of a function, run as Lambda runs it
//! - [`stream`]: stream events from a seed
//! - [`progress`]: how far queues were read, in memory
//! - [`Failing`]: a persistence that fails as stores do, by a seed
//! - `dynamodb` (a feature): an embedded DynamoDB, an endpoint before it that records every call and
//!   fails on demand, and SDK clients for it

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::missing_panics_doc,
    missing_docs
)]

mod channel;
pub mod contract;
#[cfg(feature = "dynamodb")]
pub mod dynamodb;
mod failing;
pub mod lambda;
pub mod progress;
pub mod sample;
pub mod sensors;
pub mod stream;
pub mod writers;

pub use channel::{RecordingChannel, SQS_LIMITS, SendReply, attribute};
pub use failing::{Failing, Faults};
