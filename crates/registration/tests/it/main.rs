//! Tests of the public interface.

#![allow(clippy::unwrap_used)]

mod corpus;
mod hostile;
mod lazy;
mod leaf;
mod problems;
mod shared;
mod shipped;
mod support;
mod targets;
mod trace;
