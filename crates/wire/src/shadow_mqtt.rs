//! Shadows in the vocabulary of AWS IoT Device Shadow: topics, requests, and the documents devices get.
//!
//! - [`ShadowTopic`]: whose shadow a topic names, and what is asked of it
//! - [`read`]: the payload of a request, in AWS's rules and words
//! - [`accepted_get`] and its like: what is answered
//! - [`write_delta`] and [`write_documents`]: what devices hear of a change, whoever made it
//!
//! Every time is in whole seconds since 1970, as AWS's are.

mod documents;
mod fields;
mod request;
mod response;
mod topic;

pub use documents::{ShadowDocument, ShadowDocuments, write_delta, write_documents};
pub use request::{Part, Rejection, Request, Requested, UpdateRequest, read};
pub use response::{Accepted, Sent, accepted_delete, accepted_get, accepted_update, rejected};
pub use topic::{NotAShadowTopic, Operation, ShadowTopic, escape_level};
