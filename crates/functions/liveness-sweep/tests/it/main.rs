//! The sweep in memory and on DynamoDB, a mass outage, and the binary.
#![allow(clippy::unwrap_used)]

mod mass;
mod million;
mod process;
mod sweep;
mod table;
