//! Sensors in a table.
//!
//! | PK | SK | holds |
//! |---|---|---|
//! | `SENSOR#{id}` | `SENSORINFO` | the sensor; in the index `ByLocation` under `CITY#{city}` / `LOCATION#{building}#{floor}#{room}#{id}` |
//! | `SENSOR#{id}` | `STATE` | its latest state; in the index `Live` under `LIVE#{shard}` / when to look at it |
//! | `SENSOR#{id}` | `READ#{time}#{sequence}` | a reading |
//! | `SENSOR#{id}` | `PURGE#{generation}` | readings to be deleted; in the index `Live` under `PURGE` |
//! | `SENSOR#{id}` | `CLIENT#{client}` | a link, whose mirror has both keys swapped |
//!
//! `SENSORINFO` sorts right behind the readings, so one query backwards from it gives the sensor and its
//! latest readings. Nothing else may sort between them.

mod batch;
mod call;
mod item;
mod keys;
mod live;
mod place;
mod purge;
mod readings;
mod record;
mod registry;
mod unregister;

use antumbra_service::sensors::{
    CheckOutcome, Cursor, DEFAULT_SHARDS, LivenessIndex, LocationPrefix, OwnedReading, Page, Purge,
    PurgeQueue, Reading, ReadingStore, Recorded, RegisteredSensor, Retention, Sensor, SensorError,
    SensorId, SensorStore, SensorWithState, Signal, State, StateStore, StoreError,
};
use antumbra_shadow::Timestamp;
use aws_sdk_dynamodb::Client;

/// Which table, and how it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SensorConfig {
    /// The table's name or ARN.
    pub table: String,
    /// Over how many shards the sensors that are waited for are spread. The same everywhere; more may be
    /// set later, fewer never.
    pub shards: u32,
    /// How long readings are kept.
    pub retention: Retention,
}

impl SensorConfig {
    /// A table with the defaults: 16 shards, readings kept forever.
    ///
    /// ```
    /// use antumbra_dynamodb::SensorConfig;
    /// assert_eq!(SensorConfig::new("antumbra").shards, 16);
    /// ```
    pub fn new(table: impl Into<String>) -> SensorConfig {
        SensorConfig {
            table: table.into(),
            shards: DEFAULT_SHARDS,
            retention: Retention::default(),
        }
    }
}

/// Sensors in a DynamoDB table. How long a call may take and how often the SDK tries it is the client's
/// configuration.
#[derive(Debug, Clone)]
pub struct DynamoDbSensors {
    client: Client,
    config: SensorConfig,
}

impl DynamoDbSensors {
    /// Uses the table through the client. The table is there already.
    pub fn new(client: Client, config: SensorConfig) -> DynamoDbSensors {
        DynamoDbSensors { client, config }
    }

    /// Uses the table with the credentials, region and limits of an SDK configuration.
    pub fn connect(sdk: &aws_types::SdkConfig, config: SensorConfig) -> DynamoDbSensors {
        DynamoDbSensors::new(Client::new(sdk), config)
    }

    /// How it is used.
    pub fn config(&self) -> &SensorConfig {
        &self.config
    }
}

impl SensorStore for DynamoDbSensors {
    async fn register(&self, new: &RegisteredSensor) -> Result<RegisteredSensor, SensorError> {
        self.register_sensor(new).await
    }

    async fn get(&self, id: &SensorId) -> Result<RegisteredSensor, SensorError> {
        self.get_sensor(id).await
    }

    async fn state(&self, id: &SensorId) -> Result<State, SensorError> {
        self.get_state(id).await
    }

    async fn change(
        &self,
        before: &RegisteredSensor,
        after: &Sensor,
        now: Timestamp,
    ) -> Result<RegisteredSensor, SensorError> {
        self.change_sensor(before, after, now).await
    }

    async fn unregister(
        &self,
        sensor: &RegisteredSensor,
        now: Timestamp,
    ) -> Result<(), SensorError> {
        self.unregister_sensor(sensor, now).await
    }

    async fn in_place(
        &self,
        place: &LocationPrefix,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<SensorWithState>, SensorError> {
        self.list_place(place, limit, cursor).await
    }

    async fn all(
        &self,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<SensorWithState>, SensorError> {
        self.list_all(limit, cursor).await
    }
}

impl ReadingStore for DynamoDbSensors {
    async fn save(
        &self,
        sensor: &RegisteredSensor,
        readings: &[Reading],
    ) -> Result<(), SensorError> {
        self.save_of_registered(sensor, readings).await
    }

    async fn latest(
        &self,
        id: &SensorId,
        most: usize,
    ) -> Result<(RegisteredSensor, Vec<Reading>), SensorError> {
        self.latest_readings(id, most).await
    }

    async fn between(
        &self,
        id: &SensorId,
        from: Timestamp,
        to: Timestamp,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<Reading>, SensorError> {
        self.readings_between(id, from, to, limit, cursor).await
    }
}

impl StateStore for DynamoDbSensors {
    async fn record(&self, signal: &Signal) -> Result<Option<Recorded>, StoreError> {
        self.record_signal(signal).await
    }

    async fn save_readings(&self, readings: &[OwnedReading]) -> Vec<Result<(), StoreError>> {
        self.put_readings(readings).await
    }
}

impl LivenessIndex for DynamoDbSensors {
    fn shards(&self) -> u32 {
        self.config.shards
    }

    async fn due(
        &self,
        shard: u32,
        now: Timestamp,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<SensorId>, StoreError> {
        self.due_sensors(shard, now, limit, cursor).await
    }

    async fn check(&self, id: &SensorId, now: Timestamp) -> Result<CheckOutcome, StoreError> {
        self.check_sensor(id, now).await
    }
}

impl PurgeQueue for DynamoDbSensors {
    async fn due_purges(&self, now: Timestamp, limit: usize) -> Result<Vec<Purge>, StoreError> {
        self.purges_due(now, limit).await
    }

    async fn purge(&self, purge: &Purge, now: Timestamp) -> Result<bool, StoreError> {
        self.purge_some(purge, now).await
    }
}
