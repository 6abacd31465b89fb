//! The crate through its public doors.

// Here a failed unwrap is a failed test, in what the tests share as in the tests themselves.
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
