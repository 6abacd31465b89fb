//! Deliveries in the main table, with their client, in order of time.
//!
//! | PK | SK | holds |
//! |---|---|---|
//! | `CLIENT#{id}` | `DELIVERY#{time}{sequence}_{hash}` | the delivery, what it has come to, its attempts, `ttl` |
//!
//! In the index `Listed` it lies under `DELIVERIES#{sensor}`, in the same order: the history of a sensor.
//! A turn costs one `BatchGetItem` (client, secrets, link, state, delivery) and one `UpdateItem`; a failed
//! one another for the client's circuit.

mod circuit;
mod history;
mod item;
mod record;
mod standing;

use std::time::Duration;

use aws_sdk_dynamodb::Client as Database;

/// How long the history is kept, unless said otherwise.
const RETENTION: Duration = Duration::from_secs(30 * 24 * 3600);

/// Deliveries in a table.
#[derive(Debug, Clone)]
pub struct DynamoDbDeliveries {
    database: Database,
    table: String,
    retention: Duration,
}

impl DynamoDbDeliveries {
    /// Uses the table through the SDK's client; keeps the history for 30 days.
    pub fn new(database: Database, table: impl Into<String>) -> DynamoDbDeliveries {
        DynamoDbDeliveries {
            database,
            table: table.into(),
            retention: RETENTION,
        }
    }

    /// Uses the table with the credentials, region and limits of an SDK configuration.
    pub fn connect(sdk: &aws_types::SdkConfig, table: impl Into<String>) -> DynamoDbDeliveries {
        DynamoDbDeliveries::new(Database::new(sdk), table)
    }

    /// Keeps the history for as long.
    #[must_use]
    pub fn with_retention(self, retention: Duration) -> DynamoDbDeliveries {
        DynamoDbDeliveries { retention, ..self }
    }
}
