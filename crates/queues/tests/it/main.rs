//! Queues and topics through their public interface.

#![allow(clippy::unwrap_used, reason = "tests")]

mod eventbridge;
mod model;
mod operations;
mod restart;
