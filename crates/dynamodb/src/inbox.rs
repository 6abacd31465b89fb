//! Inbox messages and sources in the messages table.
//!
//! | item | attributes |
//! |---|---|
//! | message | `body`, `receivedAt`, `undeletedId` (the id again); optional `bodyText`, `ttl` |
//! | tombstone of a deleted message | `deletedAt`, `ttl` |
//! | source | `lastContact`, to the hour |
//!
//! `body` is a map, for people and programs that read the table. DynamoDB normalises numbers; if the
//! message wrote one in another form (`72.50`, `1e3`), `bodyText` has the original text, and readers get
//! that.
//!
//! A deleted message leaves a tombstone for as long as its queue may deliver it again, so that it stays
//! deleted. Listings read the index of items with an `undeletedId`, which holds no tombstones.
//!
//! A source and its index can hold 10 GB, as in any table with a local index.

mod delete;
mod get;
mod item;
mod query;
mod sources;
mod store;

pub use sources::SOURCE_SHARDS;

use aws_sdk_dynamodb::Client;

use crate::table::Table;
use crate::tables::MESSAGES;

/// Inbox messages in a DynamoDB table. The client's configuration sets time-outs and retries.
#[derive(Debug, Clone)]
pub struct DynamoDbInbox {
    table: Table,
}

impl DynamoDbInbox {
    /// Uses an existing table, by name or ARN.
    pub fn new(client: Client, table: impl Into<String>) -> DynamoDbInbox {
        DynamoDbInbox {
            table: Table::new(client, table, MESSAGES),
        }
    }

    /// Uses an existing table with the credentials, region and limits of an SDK configuration.
    pub fn connect(sdk: &aws_types::SdkConfig, table: impl Into<String>) -> DynamoDbInbox {
        DynamoDbInbox::new(Client::new(sdk), table)
    }
}
