//! Registrations through their public doors.

mod corpus;
mod hostile;
mod lazy;
mod problems;
mod shared;
mod shipped;
mod support;
mod targets;
