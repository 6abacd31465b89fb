//! The console over HTTP, against an embedded DynamoDB.
#![allow(clippy::unwrap_used)]
#![allow(dead_code)]

mod fleet;
mod security;
mod support;
