//! The sweep through its public door, and a fleet over a month of simulated time.
#![allow(clippy::unwrap_used)]

mod fleet;
mod mass;
mod month;
mod process;
mod sweep;
mod table;
