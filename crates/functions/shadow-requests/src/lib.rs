//! Shadows over MQTT: get, update and delete, in the vocabulary of AWS IoT Device Shadow.
//!
//! An AWS IoT rule hands over a message; [`ShadowRequests::handle`] reads it ([`antumbra_wire::shadow_mqtt`]),
//! asks [`antumbra_service::shadows`], and publishes one answer on `/accepted` or `/rejected` below the
//! request's own topic. `/update/delta` and `/update/documents` are not its business: they come from the
//! table's stream, whoever made the change.

mod config;
pub mod connect;
mod requests;
mod serve;

pub use config::Config;
pub use requests::{HandleError, RequestSummary, ShadowRequests};

/// The function's name, in metrics, rules and on the local stack.
pub const NAME: &str = "shadow-requests";
