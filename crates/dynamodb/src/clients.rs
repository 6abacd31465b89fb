//! Clients and their links in the main table.
//!
//! A client and its circuit are one item. Its signing secrets are another, which few functions read. A link
//! is two items, one in the sensor's partition and its mirror in the client's, which are written and
//! removed together. Deliveries are in [`crate::DynamoDbDeliveries`].

pub(crate) mod item;
pub(crate) mod links;
mod store;

use aws_sdk_dynamodb::Client as SdkClient;

use crate::table::Table;
use crate::tables::MAIN;

/// Clients and links in a DynamoDB table.
#[derive(Debug, Clone)]
pub struct DynamoDbClients {
    table: Table,
}

impl DynamoDbClients {
    /// Uses an existing table.
    pub fn new(client: SdkClient, table: impl Into<String>) -> DynamoDbClients {
        DynamoDbClients {
            table: Table::new(client, table, MAIN),
        }
    }

    /// Uses an existing table with the credentials, region and limits of an SDK configuration.
    pub fn connect(sdk: &aws_types::SdkConfig, table: impl Into<String>) -> DynamoDbClients {
        DynamoDbClients::new(SdkClient::new(sdk), table)
    }
}
