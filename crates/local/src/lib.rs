//! The local stack: everything that Antumbra needs from AWS, in one process on loopback.
//!
//! Reading order: [`listen`], [`http`] and [`clients`] are the two ends of a connection, and `in_process` replaces it. [`dynamodb`], [`queues`] and
//! [`mqtt`] are the services. A [`function`] is invoked by the event sources [`stream`], [`queue_pump`],
//! [`rabbitmq`], [`rules`] and [`schedule`]. [`stack`] starts all of them with the product's functions, and
//! [`unkind`] makes them behave as AWS may.
//!
//! [`progress`] is for long commands and loads.
//!
//! Only [`stack`] knows the product's functions; to the other modules they are functions from event bytes to
//! response bytes. Nothing here is meant for production.

pub mod clients;
pub mod dynamodb;
pub mod function;
pub mod http;
pub mod listen;
pub mod mqtt;
pub mod progress;
pub mod queue_pump;
pub mod queues;
pub mod rabbitmq;
pub mod receiver;
pub mod rules;
pub mod schedule;
pub mod stack;
pub mod stream;
pub mod task;
pub mod unkind;

mod batch_response;
mod in_process;
mod private_file;

/// Region of all local ARNs and SDK clients.
pub use antumbra_database::REGION;

/// Account of all local ARNs.
pub const ACCOUNT: &str = "000000000000";
