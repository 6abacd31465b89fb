//! The local stack through its public doors: real SDKs and real MQTT clients
//! over loopback, and event sources with functions that fail to order.

#![allow(
    clippy::unwrap_used,
    reason = "a test ends where it is surprised, in what it shares too"
)]

mod api;
mod data_plane;
mod dynamodb;
mod inbox_e2e;
mod listener_e2e;
mod mqtt;
mod queue_pump;
mod queues;
mod requests;
mod rules;
mod sensors_e2e;
mod shadows;
mod stream;
mod stream_records;
mod support;
mod topics;
mod webhooks;
