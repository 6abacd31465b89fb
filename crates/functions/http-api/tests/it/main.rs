//! The API over HTTP, against an embedded DynamoDB.
#![allow(clippy::unwrap_used)]

mod description;
mod door;
mod ground;
mod idempotency;
mod problems;
mod shadows;
