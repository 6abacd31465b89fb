//! Simulation of the whole system in one thread, with its own clock and with faults chosen by a seed.
//!
//! The product's own code runs: functions, use cases, adapters, the SDKs. Its surroundings are simulated: the
//! scheduler (`executor`), time (`clock`), AWS behind the SDKs' HTTP client (`cloud`, with the embedded
//! DynamoDB), event sources (`feed`, `stream`), webhook endpoints (`endpoint`), and the actors outside
//! (`actors`). Faults are random (`profile`) or aimed at a moment (`aim`).
//!
//! [`run`] runs one seed: set-up, a phase with faults, time to settle, and the check of the invariants against
//! the actors' memory and the streams.

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
mod run;
mod stream;
mod trace;
mod world;

pub use run::{Outcome, aim, run};
pub use world::Violation;
