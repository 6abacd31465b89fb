//! The ports on DynamoDB: the contract suites, the calls they make, and failures of DynamoDB.

#![allow(clippy::unwrap_used)]

mod calls;
mod clients;
mod contract;
mod deliveries;
mod faults;
mod golden;
mod inbox;
mod limits;
mod listing;
mod progress;
mod rejections;
mod sensors;
mod settings;
mod store;
