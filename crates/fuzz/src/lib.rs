//! Fuzz targets: every parser of bytes from outside, held to an oracle or to a law.
//!
//! A target takes any bytes and panics where something is wrong; it has no other way to say so. Two things
//! run them. `cargo test` replays `corpus/` and a fixed number of seeded mutations of it ([`Mutator`]), in
//! seconds. `scripts/fuzz` lets libFuzzer search for as long as it is told, guided by the code that an
//! input reaches. What it finds becomes a file of the corpus, and so a test.
//!
//! In reading order: [`TARGETS`]; `json`, which reads numbers the slow way; `oracle`, `plain` and
//! `reference`, the plain roads that the tests of `wire` and `shadow` have too; and `webhook`, the guard
//! of the `publish` crate by its own files, so that no fuzzer has to be built with the SDKs.

// Here a failed unwrap is a finding.
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
