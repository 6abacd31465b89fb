//! The API over HTTP, against an embedded DynamoDB.
#![allow(clippy::unwrap_used)]

mod access;
mod audit;
mod auth;
mod changes;
mod clients;
mod deliveries;
mod examples;
mod gateway;
mod history;
mod iam_grants;
mod idempotency;
mod memory;
mod messages;
mod openapi;
mod paging;
mod prefixes;
mod problems;
mod process;
mod routes;
mod secrets;
mod sensors;
mod services;
mod shadows;
mod support;
mod tenants;
