//! Inbox requests over MQTT: every request gets exactly one response.
//!
//! [`InboxRequests`] takes the event of an AWS IoT rule, parses the request
//! ([`antumbra_wire::inbox_request`]), has its [function](operations) serve it and publishes the response.
//! Invalid requests, an unavailable store and responses that are too large get an error response. The invocation
//! fails only if the event is no request or no response could be published; Lambda does not retry it, because
//! the sender no longer waits.

mod build;
pub mod config;
mod error;
pub mod operations;
mod requests;

pub use build::{build, build_send, run_on_inbox, run_send};
pub use error::OperationError;
pub use operations::{InboxFunction, RequestContext};
pub use requests::{InboxRequests, RequestSummary};
