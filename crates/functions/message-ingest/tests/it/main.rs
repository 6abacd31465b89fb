//! Messages of a queue to the inbox: each once, or in the quarantine, or delivered again.
#![allow(clippy::unwrap_used)]

mod batches;
mod calls;
mod captured;
mod groups;
mod order;
mod process;
mod rejections;
mod support;
mod time;
