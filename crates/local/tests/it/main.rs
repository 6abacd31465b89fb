//! The local stack, called with the AWS SDKs and MQTT clients over loopback, and its event sources with
//! scripted functions.

#![allow(clippy::unwrap_used, reason = "support code of tests may panic")]

mod closed;
mod console;
mod data_plane;
mod device;
mod dynamodb;
mod eventbridge;
mod failed_messages;
mod inbox_e2e;
mod listener_e2e;
mod mqtt;
mod prefix;
mod queue_pump;
mod queues;
#[cfg(feature = "rabbitmq")]
mod rabbitmq;
mod requests;
mod rules;
mod shadows;
mod stream;
mod stream_records;
mod support;
mod unkind;
mod webhooks;
