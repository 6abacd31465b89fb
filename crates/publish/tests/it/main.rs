//! The channels through their port, over real connections.
//!
//! `scripted` answers as AWS does, whatever a test wants it to say; `emulated` talks to working queues and topics, those of
//! the local stack or of another emulator (see `scripts/check-moto`). `guard` and
//! `endpoints` are about webhooks: where they may go, and what comes of it.

#![allow(
    clippy::unwrap_used,
    reason = "a test ends where it is surprised, in what it shares too"
)]

mod contract;
mod emulated;
mod endpoints;
mod eventbridge;
mod guard;
mod iot;
mod message;
mod scripted;
mod sns;
mod sqs;
