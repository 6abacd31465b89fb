//! Sensors to test with: a store in memory that keeps the laws of the ports, and the laws as tests.
//!
//! - [`MemorySensors`]: the reference. What it does is written down as plainly as it can be, so that
//!   stores can be compared with it step by step; and it is fast enough for a month of a fleet.
//! - [`contract`]: the laws, run on every implementation by [`sensor_contract!`](crate::sensor_contract)
//! - [`storm`]: many workers, duplicates and reordering, by a seed
//! - [`sample`]: sensors and signals in few words

pub mod contract;
mod memory;
pub mod sample;
pub mod storm;

pub use memory::{Figures, MemorySensors};
