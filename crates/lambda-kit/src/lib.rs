//! What every function needs around its handler, and nothing of what a handler does.
//!
//! - [`environment`]: configuration, read once, all faults told at once
//! - [`config`]: what one function reads of it, as a type; where a function starts
//! - [`telemetry`]: structured logs on standard output
//! - [`certificates`]: whom a function trusts, read from one file
//! - [`sdk`]: AWS configuration with time-outs below the function's own
//! - [`invocation`]: the runtime, handing over the event's bytes as they came
//! - [`batch`]: the partial-batch answer
//! - [`metrics`]: CloudWatch's embedded metric format

pub mod batch;
pub mod certificates;
pub mod config;
pub mod environment;
pub mod invocation;
pub mod metrics;
pub mod sdk;
pub mod telemetry;
