//! Sensors in the main table: registration, state, readings, and the purge of an unregistered sensor.
//!
//! The keys are in [`antumbra_wire::items`]. `SENSORINFO` sorts directly after the readings, so one query
//! backwards from it returns the sensor and its latest readings.

mod item;
mod keys;
mod list;
mod live;
mod purge;
mod readings;
mod record;
mod registry;
mod unregister;

use antumbra_service::sensors::{DEFAULT_SHARDS, Retention};
use aws_sdk_dynamodb::Client;

use crate::history::DynamoDbHistory;
use crate::table::Table;
use crate::tables::MAIN;

/// Configuration of a sensor table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SensorConfig {
    /// The table's name or ARN.
    pub table: String,
    /// Shards of the liveness index, the same in all functions. The number can be raised but not lowered.
    pub shards: u32,
    /// Retention of readings.
    pub retention: Retention,
}

impl SensorConfig {
    /// A table with the defaults: 64 shards, readings kept forever.
    ///
    /// ```
    /// use antumbra_dynamodb::SensorConfig;
    /// assert_eq!(SensorConfig::new("antumbra").shards, 64);
    /// ```
    pub fn new(table: impl Into<String>) -> SensorConfig {
        SensorConfig {
            table: table.into(),
            shards: DEFAULT_SHARDS,
            retention: Retention::default(),
        }
    }
}

/// Sensors in a DynamoDB table. The client's configuration sets time-outs and retries.
#[derive(Debug, Clone)]
pub struct DynamoDbSensors {
    table: Table,
    config: SensorConfig,
    /// The history, to purge the past of shadows, whose purges are in the same index.
    history: Option<DynamoDbHistory>,
}

#[allow(missing_docs)]
impl DynamoDbSensors {
    pub fn new(client: Client, config: SensorConfig) -> DynamoDbSensors {
        let table = Table::new(client, &config.table, MAIN);
        DynamoDbSensors {
            table,
            config,
            history: None,
        }
    }

    /// Uses an existing table with the credentials, region and limits of an SDK configuration.
    pub fn connect(sdk: &aws_types::SdkConfig, config: SensorConfig) -> DynamoDbSensors {
        DynamoDbSensors::new(Client::new(sdk), config)
    }

    pub fn config(&self) -> &SensorConfig {
        &self.config
    }
}
