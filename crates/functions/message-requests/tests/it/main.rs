//! The functions on a real DynamoDB over HTTP, with answers recorded and failing to order.
#![allow(clippy::unwrap_used)]

mod calls;
mod examples;
mod faults;
mod malformed;
mod numbers;
mod pages;
mod send;
mod support;
