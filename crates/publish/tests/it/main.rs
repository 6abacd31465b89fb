//! Channels through their port, over real connections.
//!
//! `scripted` is an HTTP server with scripted AWS responses; `emulated` uses the queues and topics of the local stack or of
//! another emulator (see `scripts/check-moto`). `guard` and `endpoints` test webhooks.

#![allow(
    clippy::unwrap_used,
    reason = "a test ends where it is surprised, in what it shares too"
)]

mod contract;
mod emulated;
mod endpoints;
mod eventbridge;
mod failed_queue;
mod guard;
mod iot;
mod message;
mod scripted;
mod sns;
mod sqs;
