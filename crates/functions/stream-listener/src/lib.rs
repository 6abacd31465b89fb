//! The stream listener: every change of the table, to everyone who registered for it.
//!
//! [`Listener::handle`] takes the bytes of a DynamoDB stream event and answers which record to go on
//! from. It decides first (`plan`, pure), then sends ([`antumbra_service::notifications`]), then parks
//! what can never be sent, and only then answers. Nothing is claimed done that was neither sent nor
//! parked.

mod config;
mod connect;
mod deliveries;
mod explain;
pub mod files;
mod listener;
mod plan;
mod resend;
mod routes;
mod shadows;
mod undeliverable;

pub use config::Config;
pub use connect::{AwsChannelFactory, ChannelFactory};
pub use deliveries::ClientsRoute;
pub use explain::{ExplainedRecord, ExplainedRegistration, explain};
pub use listener::{BatchSummary, Listener};
pub use resend::{ResendError, UndeliverableNotification};
pub use routes::RouteError;

/// The function's name, in metrics and on the local stack.
pub const NAME: &str = "stream-listener";
