//! The inbox over MQTT: each request gets exactly one answer.
//!
//! [`Responder::handle`] takes the event of an IoT rule. It reads the request (`antumbra_wire::inbox_request`,
//! pure), has it served by one of the [`operations`], each of which holds the one port its role allows, and
//! publishes the answer. A request that makes no sense, a store that does not answer, an answer that is too
//! large: all of that is an answer too. The invocation fails only if there is nobody to answer, or if no
//! answer could be published; nobody tries it again, since whoever asked has stopped waiting.

mod build;
pub mod config;
pub mod operations;
mod responder;
mod serve;

pub use build::{build, build_send, run_on_inbox, run_on_queue};
pub use responder::{HandleError, RequestSummary, Responder};
pub use serve::{InboxOperation, OperationError, RequestContext};
