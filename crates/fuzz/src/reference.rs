//! Naive merge, diff and acknowledge: the reference implementation of the tests of `shadow`.

#[path = "../../shadow/tests/reference/acknowledge.rs"]
pub(crate) mod acknowledge;
#[path = "../../shadow/tests/reference/diff.rs"]
pub(crate) mod diff;
#[path = "../../shadow/tests/reference/merge.rs"]
pub(crate) mod merge;
#[path = "../../shadow/tests/reference/value.rs"]
pub(crate) mod value;
