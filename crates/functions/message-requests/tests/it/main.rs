//! The functions on DynamoDB, with recorded responses and scripted failures.
#![allow(clippy::unwrap_used)]

mod calls;
mod examples;
mod faults;
mod malformed;
mod numbers;
mod pages;
mod process;
mod send;
mod support;
