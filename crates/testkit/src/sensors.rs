//! Sensors: a reference store in memory, and the contract of the ports as tests.
//!
//! - [`MemorySensors`]: a simple implementation to compare other stores with
//! - [`contract`]: the laws, run on every implementation by [`sensor_contract!`](crate::sensor_contract)
//! - [`storm`]: concurrent workers with duplicates and reordering, by a seed
//! - [`sample`]: builders of sensors and signals

pub mod contract;
mod memory;
pub mod sample;
pub mod storm;

pub use memory::{Figures, MemorySensors};
