//! Deliveries in the main table, in their client's partition and ordered by time.
//!
//! The index `Listed` holds them by sensor, in the same order. An attempt costs one `BatchGetItem` (client,
//! secrets, link, state, chain, delivery) and two `UpdateItem`, which begin and end it; a failed attempt another
//! one for the circuit. What waits outside of the queues has an entry in a list: held deliveries per client,
//! deferred deliveries per client and sensor, due deliveries per shard.

mod context;
mod due;
mod history;
pub(crate) mod item;
mod record;
mod store;

use std::time::Duration;

use aws_sdk_dynamodb::Client as SdkClient;

use crate::table::Table;
use crate::tables::{MAIN, SECRETS, secrets_table};

const DEFAULT_RETENTION: Duration = Duration::from_secs(30 * 24 * 3600);

/// Deliveries in a DynamoDB table.
#[derive(Debug, Clone)]
pub struct DynamoDbDeliveries {
    table: Table,
    secrets_table: Table,
    retention: Duration,
}

impl DynamoDbDeliveries {
    /// Uses an existing table and keeps the history for 30 days.
    pub fn new(client: SdkClient, table: impl Into<String>) -> DynamoDbDeliveries {
        let table = table.into();
        DynamoDbDeliveries {
            secrets_table: Table::new(client.clone(), secrets_table(&table), SECRETS),
            table: Table::new(client, table, MAIN),
            retention: DEFAULT_RETENTION,
        }
    }

    /// Uses an existing table with the credentials, region and limits of an SDK configuration.
    pub fn connect(sdk: &aws_types::SdkConfig, table: impl Into<String>) -> DynamoDbDeliveries {
        DynamoDbDeliveries::new(SdkClient::new(sdk), table)
    }

    /// The same with another retention of the history.
    #[must_use]
    pub fn with_retention(self, retention: Duration) -> DynamoDbDeliveries {
        DynamoDbDeliveries { retention, ..self }
    }
}
