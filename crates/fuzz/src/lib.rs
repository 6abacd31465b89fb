//! Fuzz targets: every parser of untrusted bytes is checked against an oracle or an invariant.
//!
//! A target takes any bytes and panics on a violation. `cargo test` replays `corpus/` and a fixed number of
//! seeded mutations of it ([`Mutator`]) in seconds. `scripts/fuzz` runs libFuzzer, guided by coverage. Each
//! finding becomes a file of the corpus and so a test.
//!
//! In reading order: [`TARGETS`]; `json`, a slow reader of numbers; `oracle`, `plain` and `reference`, the
//! naive implementations shared with the tests of `wire` and `shadow`; and `webhook`, which includes the
//! URL guard of `publish` by its files, so that no fuzzer has to be built with the SDKs.

// A failed unwrap is a finding.
#![allow(clippy::unwrap_used)]

mod generate;
mod json;
mod mutate;
#[path = "../../wire/tests/it/oracle.rs"]
mod oracle;
#[path = "../../wire/tests/it/plain.rs"]
mod plain;
mod reference;
mod targets;
mod webhook;

pub use generate::stream_event;
pub use mutate::Mutator;
pub use targets::{TARGETS, Target, target};
