//! Shadows on DynamoDB: the contract every persistence keeps, and what is DynamoDB's own.

#![allow(clippy::unwrap_used)]

mod calls;
mod contract;
mod faults;
mod limits;
mod listing;
mod store;
mod writers;
