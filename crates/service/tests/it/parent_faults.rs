//! Faults of the library this grew from, each kept out by a test of its own name.
