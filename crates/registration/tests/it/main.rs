//! Registrations through their public doors.

#![allow(clippy::unwrap_used)]

mod corpus;
mod hostile;
mod lazy;
mod problems;
mod shared;
mod shipped;
mod support;
mod targets;
