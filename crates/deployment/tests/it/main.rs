//! Compares the deployment with the code: the templates in `infra/`, evaluated as CloudFormation evaluates them,
//! against the calls of the functions, the tables and queues of the code, and the local stack.
//!
//! - [`template`]: evaluates templates
//! - [`functions`]: the functions of a deployment, as SAM expands them
//! - [`grants`]: the permissions of a function's role
//! - [`calls`]: records every AWS call of the functions
//! - [`scenario`]: exercises everything the functions can do
//! - `permissions`, `drift`, `stages`, `scripts`, `iot`, `alarms`, `costs`: the tests

#![allow(
    clippy::unwrap_used,
    reason = "a test ends at the first surprise, in shared code too"
)]

mod alarms;
mod calls;
mod costs;
mod drift;
mod functions;
mod grants;
mod iot;
mod permissions;
mod scenario;
mod scripts;
mod stages;
mod template;

// Shared with the tests of the local stack.
#[allow(dead_code, unused_imports)]
#[path = "../../../local/tests/it/device.rs"]
mod device;
#[allow(dead_code)]
#[path = "../../../local/tests/it/webhooks/endpoint.rs"]
mod endpoint;
#[allow(dead_code)]
#[path = "../../../local/tests/it/support.rs"]
mod support;
