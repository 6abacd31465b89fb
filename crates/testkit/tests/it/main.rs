//! Tests of the failing shadow store and of the sensors in memory.
#![allow(clippy::unwrap_used)]

mod failing;
mod sensors;
