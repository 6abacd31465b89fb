//! Tests of the crate through its public interface.

// A failed unwrap fails the test, in shared code too.
#![allow(clippy::unwrap_used)]

mod allocations;
mod generate;
mod items;
mod notification;
mod oracle;
mod plain;
mod properties;
mod queues;
mod stream;
