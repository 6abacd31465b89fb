//! Everything a function needs around its use case: configuration, AWS clients, the runtime, and the
//! skeletons that several functions share.
//!
//! - [`config`], [`environment`]: configuration, read once at start, all faults reported together
//! - [`sdk`], [`certificates`]: how a function calls AWS and which certificates it trusts
//! - [`telemetry`], [`metrics`]: JSON logs and CloudWatch metrics on standard output
//! - [`handler`], [`runtime`]: the interface of a function, and the Lambda runtime that calls it
//! - [`functions`]: the table of all functions with their limits and event sources
//! - [`batch`]: functions that process batches and report batch item failures
//! - [`respond`]: functions that answer MQTT requests

pub mod batch;
pub mod certificates;
pub mod config;
pub mod environment;
pub mod functions;
pub mod handler;
pub mod metrics;
pub mod respond;
pub mod runtime;
pub mod sdk;
pub mod telemetry;

pub use config::start;
pub use functions::FUNCTIONS;
pub use handler::{Handler, HandlerError, Invocation, Response};
pub use runtime::run;
