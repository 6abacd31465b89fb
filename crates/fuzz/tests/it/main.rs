//! The corpus of every target, and a fixed number of mutations of it. `scripts/fuzz` searches on.

// A failed unwrap fails the test.
#![allow(clippy::unwrap_used)]

mod replay;
