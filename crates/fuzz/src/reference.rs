//! Naive merge, diff and acknowledge: the reference implementation of the tests of `shadow`.

#[path = "../../shadow/tests/it/reference/acknowledge.rs"]
pub(crate) mod acknowledge;
#[path = "../../shadow/tests/it/reference/diff.rs"]
pub(crate) mod diff;
#[path = "../../shadow/tests/it/reference/merge.rs"]
pub(crate) mod merge;
#[path = "../../shadow/tests/it/reference/value.rs"]
pub(crate) mod value;
