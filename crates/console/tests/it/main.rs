//! The console over HTTP, against an embedded DynamoDB.
#![allow(clippy::unwrap_used)]

mod deliveries;
mod device;
mod fleet;
mod hostile;
mod inbox;
mod live;
mod parts;
mod policy;
mod queues;
mod registrations;
mod security;
mod sensors;
#[path = "../../../functions/http-api/tests/it/services.rs"]
mod services;
mod sqs;
mod support;
