//! Notifications of table changes: from a DynamoDB stream event to messages on channels.
//!
//! [`Listener::handle`] decodes the event and plans its messages (`plan`, pure), adds those that need the other
//! document of a shadow (`shadow_messages`) or the clients linked to a sensor (`deliveries`), sends them, and sends
//! what is undeliverable to its own queue. The summary names the record to continue from: every record before it
//! was sent or is in the undeliverable queue or the spill queue, where messages wait for a target that keeps failing
//! (`spill`).
//!
//! [`StoredNotification`] sends a notification again; [`redrive`] moves all kinds of failed messages back to
//! their source; [`explain()`] states why a registration matches or not.

mod deliveries;
mod dispatch_list;
mod explain;
pub mod files;
mod listener;
mod plan;
pub mod redrive;
mod resend;
mod retry;
mod routes;
mod shadow_messages;
mod spill;
mod undeliverable;

pub use deliveries::ClientsRoute;
pub use explain::{ExplainedRecord, ExplainedRegistration, explain};
pub use listener::{BatchSummary, Listener, ReadDocuments};
pub use resend::ResendError;
pub use routes::{ChannelFactory, RouteError};
pub use shadow_messages::{CurrentDocument, Other};
pub use spill::{Spill, SpillSummary};
pub use undeliverable::StoredNotification;
