//! Queues and topics through their public interface.

#![allow(clippy::unwrap_used, reason = "tests")]

mod model;
mod operations;
mod restart;
