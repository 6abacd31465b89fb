//! Clients and their links in the main table.
//!
//! A client and its circuit are one item. Its signing secrets are another, in a table that few functions may read. A link
//! is two items, one in the sensor's partition and its mirror in the client's, which are written and
//! removed together. Deliveries are in [`crate::DynamoDbDeliveries`].

pub(crate) mod item;
pub(crate) mod links;
mod store;

use aws_sdk_dynamodb::Client as SdkClient;

use crate::table::Table;
use crate::tables::{MAIN, SECRETS, secrets_table};

/// Clients and links in a DynamoDB table.
#[derive(Debug, Clone)]
pub struct DynamoDbClients {
    table: Table,
    secrets_table: Table,
}

impl DynamoDbClients {
    /// Uses an existing table, and the table of secrets that belongs to it.
    pub fn new(client: SdkClient, table: impl Into<String>) -> DynamoDbClients {
        let table = table.into();
        DynamoDbClients {
            secrets_table: Table::new(client.clone(), secrets_table(&table), SECRETS),
            table: Table::new(client, table, MAIN),
        }
    }

    /// Uses an existing table with the credentials, region and limits of an SDK configuration.
    pub fn connect(sdk: &aws_types::SdkConfig, table: impl Into<String>) -> DynamoDbClients {
        DynamoDbClients::new(SdkClient::new(sdk), table)
    }
}
