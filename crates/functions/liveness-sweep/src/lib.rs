//! Liveness sweep: every minute, the sensors that fell silent.
//!
//! [`Sweeper::run`] is what the schedule calls. What the schedule says in its event does not matter; what
//! matters is that it comes. A sweep that is late or left out makes nothing wrong: what is due stays
//! due. Two at the same time find each sensor lost once.

mod config;
mod sweeper;

pub use config::Config;
pub use sweeper::{Report, SweepError, Sweeper, gauge};

/// The function's name, in metrics and on the local stack.
pub const NAME: &str = "liveness-sweep";
