//! Support for tests. Only a dev-dependency.
//!
//! - [`RecordingChannel`]: a channel that records messages and fails as a script says
//! - [`contract`]: the contract of `ShadowStore` as tests, run on every implementation by
//!   [`shadow_contract!`]
//! - [`sample`]: builders of shadows, documents and writes
//! - [`sensors`]: sensors in memory, and the contract of their ports
//! - [`writers`]: concurrent writers through the SDK, on a store that fails
//! - [`http`]: an HTTP server with scripted responses
//! - [`lambda`]: the binary of a function, run as Lambda runs it
//! - [`stream`]: stream events by a seed
//! - [`progress`]: ingest progress in memory
//! - [`suspensions`]: records of failing targets in memory, and the contract of their port
//! - [`all_pages`]: the rows of a whole listing
//! - [`table`]: tables of cases as text
//! - [`Failing`]: a shadow store that fails, by a seed
//! - `dynamodb` (a feature): an embedded DynamoDB behind an endpoint that records calls and fails on demand
//! - `tls` (a feature): certificates of TLS endpoints

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod channel;
pub mod contract;
#[cfg(feature = "dynamodb")]
pub mod dynamodb;
mod failing;
mod forward;
pub mod http;
pub mod lambda;
mod paging;
pub mod progress;
pub mod sample;
pub mod sensors;
pub mod stream;
pub mod suspensions;
pub mod table;
#[cfg(feature = "tls")]
pub mod tls;
pub mod writers;

pub use channel::{RecordingChannel, SQS_LIMITS, SendReply, attribute};
pub use failing::{Failing, Faults};
pub use paging::all_pages;
