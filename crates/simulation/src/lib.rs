//! The whole system in one thread, at a clock of its own, with faults by a seed.
//!
//! The product's own code runs: functions with their handlers, use cases, adapters, the SDKs. Only what
//! is outside is simulated: the scheduler (`executor`), time (`clock`), AWS behind the SDKs' HTTP client
//! (`cloud`, with the embedded DynamoDB in it), what calls functions (`feed`, `stream`), the endpoints of
//! webhooks (`endpoint`), and those who report, signal, write and wish (`actors`). What goes wrong is by
//! chance (`profile`), or aims at a moment (`aim`).
//!
//! [`run`] is one seed: everything is set up, a storm passes, everything is left to settle, and the
//! invariants are checked against what the actors remember and the streams tell.

#![allow(clippy::missing_panics_doc)]

mod actors;
mod aim;
mod chance;
mod clock;
mod cloud;
mod endpoint;
mod executor;
mod feed;
mod functions;
mod invariants;
mod profile;
mod queue;
mod run;
mod stream;
mod trace;
mod world;

pub use run::{Outcome, run};
pub use world::Broken;
