//! The ports on DynamoDB, through the AWS SDK.
//!
//! In reading order:
//!
//! - [`DynamoDbShadows`]: shadows in a table, and how they lie there
//! - [`DynamoDbIdempotency`]: answers to requests that may be sent again
//! - [`DynamoDbInbox`]: messages in a table of their own
//! - [`DynamoDbProgress`]: how far queues have been read
//! - [`DynamoDbClients`], [`DynamoDbDeliveries`]: clients with their links, and what they were sent
//! - [`DynamoDbSensors`]: sensors, their readings and states
//! - [`Table`]: the tables as data, made where they are missing
//!
//! Nothing is decided here that a port's documentation does not say. What a caller is told of a
//! failure names the call and DynamoDB's code for it, never what was being stored.

mod attempts;
mod clients;
mod deliveries;
mod document;
mod errors;
mod idempotency;
mod inbox;
mod progress;
mod sensors;
mod shadows;
mod tables;

pub use clients::DynamoDbClients;
pub use deliveries::DynamoDbDeliveries;
pub use idempotency::DynamoDbIdempotency;
pub use inbox::DynamoDbInbox;
pub use progress::DynamoDbProgress;
pub use sensors::{DynamoDbSensors, SensorConfig};
pub use shadows::{DynamoDbShadows, ShadowTableConfig};
pub use tables::{
    BY_LOCATION, Existing, Index, LISTED, LIVE, MAIN, MESSAGES, Scalar, Table, TableError,
    UNDELETED, client, stream_of,
};

/// The examples of the SDK page, compiled as doc tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/sdk.md")]
pub struct SdkPage;
