//! The console over HTTP, against an embedded DynamoDB.
#![allow(clippy::unwrap_used)]

mod fleet;
mod security;
mod support;
