//! Tests of the failing shadow store, and of the sensors and suspensions in memory.
#![allow(clippy::unwrap_used)]

mod failing;
mod sensors;
mod suspensions;
