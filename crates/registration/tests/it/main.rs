//! Registrations through their public doors.

#![allow(clippy::unwrap_used)]

mod corpus;
mod hostile;
mod lazy;
mod parent_faults;
mod problems;
mod shared;
mod shipped;
mod support;
mod targets;
