//! Clients and their links in the main table.
//!
//! | PK | SK | holds |
//! |---|---|---|
//! | `CLIENT#{id}` | `CLIENTINFO` | the client and its circuit; in the index `Listed` under `CLIENTS` |
//! | `CLIENT#{id}` | `CLIENTSECRETS` | what its deliveries are signed with, apart so that it is read by few |
//! | `SENSOR#{sensor}` | `CLIENT#{id}` | a link |
//! | `CLIENT#{id}` | `SENSOR#{sensor}` | its mirror, written and removed together with it |
//! | `CLIENT#{id}` | `DELIVERY#…` | see [`crate::DynamoDbDeliveries`] |

pub(crate) mod item;
pub(crate) mod keys;
mod links;
mod secrets;
pub(crate) mod store;
pub(crate) mod update;

use aws_sdk_dynamodb::Client as Database;

/// Clients and links in a table.
#[derive(Debug, Clone)]
pub struct DynamoDbClients {
    database: Database,
    table: String,
}

impl DynamoDbClients {
    /// Uses the table through the SDK's client. The table is there already.
    pub fn new(database: Database, table: impl Into<String>) -> DynamoDbClients {
        DynamoDbClients {
            database,
            table: table.into(),
        }
    }

    /// Uses the table with the credentials, region and limits of an SDK configuration.
    pub fn connect(sdk: &aws_types::SdkConfig, table: impl Into<String>) -> DynamoDbClients {
        DynamoDbClients::new(Database::new(sdk), table)
    }
}
