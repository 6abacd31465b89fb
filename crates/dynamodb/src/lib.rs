//! The ports on DynamoDB, with the AWS SDK.
//!
//! In reading order:
//!
//! - `table`: the calls to a table; expressions, cursors, retries and errors
//! - [`DynamoDbShadows`]: shadows and their documents
//! - [`DynamoDbSensors`]: sensors, their states and readings
//! - [`DynamoDbClients`], [`DynamoDbDeliveries`]: clients with their links, and deliveries to them
//! - [`DynamoDbInbox`]: messages, in a table of their own
//! - [`DynamoDbHistory`], [`HistoryReader`], [`Feed`]: the past of shadows and the change feed, in a table of their own
//! - [`DynamoDbIdempotency`]: idempotency records
//! - [`DynamoDbProgress`]: ingest progress of queues
//! - [`DynamoDbSuspensions`]: registrations whose target fails
//! - [`DynamoDbSettings`]: settings that all programs using the table share
//! - [`TableDefinition`]: the tables as data, to create them for tests and local use
//! - `TableScan` (the feature `scan`): the items of another program's table
//! - `emulation` (a feature): requests that DynamoDB rejects and the embedded database accepts
//!
//! The ports' documentation states the behaviour. Errors name the call and DynamoDB's code, never the
//! content of an item.

#![warn(missing_docs)]

mod attempts;
mod clients;
mod deliveries;
mod document;
#[cfg(feature = "emulation")]
pub mod emulation;
mod error;
mod history;
#[cfg(test)]
mod hot_keys;
mod idempotency;
mod inbox;
mod progress;
#[cfg(feature = "scan")]
mod scan;
mod sensors;
mod settings;
mod shadows;
#[cfg(feature = "streams")]
pub mod streams;
mod suspensions;
mod table;
mod tables;
mod value;

pub use aws_sdk_dynamodb::Client;
pub use clients::DynamoDbClients;
pub use deliveries::DynamoDbDeliveries;
pub use history::{
    DynamoDbHistory, Feed, FeedConfig, FeedSettings, HistoryConfig, HistoryReader, WrittenEntries,
};
pub use idempotency::DynamoDbIdempotency;
pub use inbox::{DynamoDbInbox, SOURCE_SHARDS};
pub use progress::DynamoDbProgress;
#[cfg(feature = "scan")]
pub use scan::TableScan;
pub use sensors::{DynamoDbSensors, SensorConfig};
pub use settings::{DynamoDbSettings, SettingsError, TableSettings};
pub use shadows::{DynamoDbShadows, PurgeState, PurgeStep, ShadowTableConfig};
pub use suspensions::DynamoDbSuspensions;
pub use tables::{
    BY_LOCATION, Existing, FLEET, HISTORY, Index, LISTED, LIVE, MAIN, MESSAGES, SECRETS, Scalar,
    TableDefinition, TableError, UNDELETED, client, secrets_table, stream_of,
};

/// The examples of the SDK page, compiled as doc tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/sdk.md")]
pub struct SdkPage;
