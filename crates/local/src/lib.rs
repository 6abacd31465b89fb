//! Everything Antumbra needs of AWS, in one process on loopback.
//!
//! Reading order: [`listen`] and [`clients`] are the two ends of a connection;
//! [`dynamodb`], [`queues`] and [`mqtt`] are the services, with MQTT's HTTPS side on the queues' port;
//! [`function`] is what stands for a Lambda function, and [`stream`] and
//! [`queue_pump`] call it as Lambda's event-source mappings would, [`rules`] as AWS IoT Core's rules. [`stack`] is all of
//! it together, with the product's own functions.
//!
//! But for [`stack`], nothing here knows the product's handlers: they come in as functions from
//! event bytes to response bytes. Nothing here is meant for production.

#![allow(missing_docs)]

pub mod clients;
pub mod dynamodb;
pub mod function;
pub mod listen;
pub mod mqtt;
pub mod queue_pump;
pub mod queues;
pub mod receiver;
pub mod rules;
pub mod schedule;
pub mod stack;
pub mod stream;

mod batch_response;

/// The region every local ARN and SDK client speaks of.
pub const REGION: &str = "us-east-1";

/// The account every local ARN speaks of.
pub const ACCOUNT: &str = "000000000000";
