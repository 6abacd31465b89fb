//! The deployment against the code: what the templates of `infra/` say, evaluated as CloudFormation would,
//! held against what the functions do and what the local stack makes.
//!
//! - [`template`]: a template, and what its expressions come to
//! - [`functions`]: the functions of a deployment, with what SAM adds to them
//! - [`grants`]: what the role of a function allows
//! - [`calls`]: every call that functions make to AWS, recorded
//! - [`play`]: a play in which functions do all that they can be made to do
//! - `permissions`, `drift`, `iot`, `alarms`: the tests

mod alarms;
pub(crate) mod calls;
mod drift;
pub(crate) mod functions;
pub(crate) mod grants;
mod iot;
mod permissions;
pub(crate) mod play;
pub(crate) mod template;
