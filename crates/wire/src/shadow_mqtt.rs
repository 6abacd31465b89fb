//! Shadows over MQTT in the format of AWS IoT Device Shadow. The function `shadow-requests` answers requests; the
//! stream listener sends messages after a change.
//!
//! - [`ShadowTopic`]: parses the topic of a request
//! - [`read`]: parses the payload of a request, with the errors of AWS
//! - [`accepted_get`], [`accepted_update`], [`accepted_delete`], [`rejected`]: payloads of responses
//! - [`write_delta`], [`write_documents`]: payloads of the messages after a change
//!
//! All times are in whole seconds since 1970.

mod documents;
mod fields;
mod request;
mod response;
mod topic;

pub use documents::{ShadowDocument, ShadowDocuments, write_delta, write_documents};
pub use request::{Part, Rejection, Request, Requested, UpdateRequest, read};
pub use response::{Accepted, Sent, accepted_delete, accepted_get, accepted_update, rejected};
pub use topic::{NotAShadowTopic, Operation, ShadowTopic, escape_level};
