//! The corpus of every target, and a fixed number of mutations of it. `scripts/fuzz` searches on.

// Here a failed unwrap is a failed test.
#![allow(clippy::unwrap_used)]

mod replay;
