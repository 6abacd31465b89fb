//! The console over HTTP, against an embedded DynamoDB.
#![allow(clippy::unwrap_used)]

mod deliveries;
mod device;
mod fleet;
mod hostile;
mod inbox;
mod live;
mod policy;
mod queues;
mod registrations;
mod security;
mod sensors;
mod sqs;
mod support;
