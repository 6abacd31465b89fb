//! The inbox in a table of its own.
//!
//! | uuid | messageId | holds |
//! |---|---|---|
//! | a source | an id | a message: `body`, `receivedAt`, `undeletedId`, which is the id once more; perhaps `bodyText`, `ttl` |
//! | a source | an id | a tombstone: `deletedAt`, `ttl` |
//! | `#sources` | a source | when it was last heard of: `lastContact`, an hour |
//!
//! `body` is a map, to be read by people and programs that look into the table. DynamoDB writes a number
//! in its own way; where the message wrote one otherwise (`72.50`, `1e3`), `bodyText` has its text, and
//! readers get that.
//!
//! A message that is deleted leaves a tombstone for as long as its queue may hand it over again, so that
//! it stays deleted. Whoever looks for messages looks in the index of those that have an `undeletedId`,
//! which holds no tombstones.
//!
//! No source can be called `#sources`: a `#` cannot be in a topic. A source and its index may hold 10 GB,
//! as in any table with a local index.

mod delete;
mod get;
mod item;
mod query;
mod sources;
mod store;

use aws_sdk_dynamodb::Client;

/// Messages in a DynamoDB table. How long a call may take and how often the SDK tries it is the client's
/// configuration.
#[derive(Debug, Clone)]
pub struct DynamoDbInbox {
    client: Client,
    table: String,
}

impl DynamoDbInbox {
    /// Uses the table of that name or ARN through the client. The table is there already.
    pub fn new(client: Client, table: impl Into<String>) -> DynamoDbInbox {
        DynamoDbInbox {
            client,
            table: table.into(),
        }
    }

    /// Uses the table with the credentials, region and limits of an SDK configuration.
    pub fn connect(sdk: &aws_types::SdkConfig, table: impl Into<String>) -> DynamoDbInbox {
        DynamoDbInbox::new(Client::new(sdk), table)
    }
}
