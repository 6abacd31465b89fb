//! The function through its public interface: queue events in; states, readings, quarantine and response out.
#![allow(clippy::unwrap_used)]

mod batch;
mod captured;
mod fifo;
mod markers;
mod process;
mod rabbitmq;
mod rules;
mod support;
mod table;
mod time;
