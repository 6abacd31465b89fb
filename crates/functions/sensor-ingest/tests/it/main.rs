//! The function through its public door: events of queues in, states, readings, quarantine and answer out.
#![allow(clippy::unwrap_used)]

mod batch;
mod captured;
mod fifo;
mod markers;
mod process;
mod rabbitmq;
mod storm;
mod support;
mod table;
mod time;
