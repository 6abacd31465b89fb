//! Shadows on DynamoDB: the contract every persistence keeps, and what is DynamoDB's own.

#![allow(clippy::unwrap_used)]

mod calls;
mod contract;
mod faults;
mod limits;
mod listing;
mod parent_faults;
mod store;
mod writers;
