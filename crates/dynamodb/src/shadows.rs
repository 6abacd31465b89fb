//! Shadows in a table.
//!
//! | PK | SK | holds |
//! |---|---|---|
//! | `DS#{id}` | `DSR#{name}` | the reported document |
//! | `DS#{id}` | `DSD#{name}` | the desired document |
//! | `DS#{id}` | `DSC#{name}` | both, where they are kept as one |
//!
//! A delete leaves the item with its version, `deletedAt` and a `ttl`, and nothing else, for two days. The
//! table may hold other things; what does not have these keys is not seen.

mod change;
mod delete;
mod expressions;
mod item;
mod keys;
mod list;
mod read;
mod snapshot;
mod write;

use std::num::NonZeroUsize;

use antumbra_service::shadows::{
    Cursor, Delete, DocumentSummary, Layout, ListQuery, Page, Read, ReadConsistency, ShadowStore,
    Snapshot, StoreError, Write, Written,
};
use antumbra_shadow::Timestamp;
use aws_sdk_dynamodb::Client;

pub(crate) use keys::{PARTITION_KEY, SORT_KEY};

/// Calls that run at the same time unless configured otherwise.
const DEFAULT_FAN_OUT: NonZeroUsize = NonZeroUsize::new(16).unwrap();
/// Fruitless tries to read a key unless configured otherwise.
const DEFAULT_READ_ATTEMPTS: u32 = 5;

/// Which table, and how it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShadowTableConfig {
    /// The table's name or ARN.
    pub table: String,
    /// How the two documents of a shadow are kept. A table keeps to one.
    pub layout: Layout,
    /// How many calls of one batch may run at the same time.
    pub fan_out: NonZeroUsize,
    /// How often a key is asked for that DynamoDB leaves unprocessed; at least once.
    pub read_attempts: u32,
}

impl ShadowTableConfig {
    /// A table with the defaults: separate documents, 16 calls at a time, 5 tries to read.
    ///
    /// ```
    /// use antumbra_dynamodb::ShadowTableConfig;
    /// let config = ShadowTableConfig::new("antumbra");
    /// assert_eq!((config.fan_out.get(), config.read_attempts), (16, 5));
    /// ```
    pub fn new(table: impl Into<String>) -> ShadowTableConfig {
        ShadowTableConfig {
            table: table.into(),
            layout: Layout::default(),
            fan_out: DEFAULT_FAN_OUT,
            read_attempts: DEFAULT_READ_ATTEMPTS,
        }
    }

    /// The same with another layout.
    #[must_use]
    pub fn layout(self, layout: Layout) -> ShadowTableConfig {
        ShadowTableConfig { layout, ..self }
    }
}

/// Shadows in a DynamoDB table. How long a call may take and how often the SDK tries it is the client's
/// configuration.
#[derive(Debug, Clone)]
pub struct DynamoDbShadows {
    client: Client,
    config: ShadowTableConfig,
}

impl DynamoDbShadows {
    /// Uses the table through the client. The table is there already.
    pub fn new(client: Client, config: ShadowTableConfig) -> DynamoDbShadows {
        DynamoDbShadows { client, config }
    }

    /// Uses the table with the credentials, region and limits of an SDK configuration.
    pub fn connect(sdk: &aws_types::SdkConfig, config: ShadowTableConfig) -> DynamoDbShadows {
        DynamoDbShadows::new(Client::new(sdk), config)
    }

    /// How it is used.
    pub fn config(&self) -> &ShadowTableConfig {
        &self.config
    }
}

impl ShadowStore for DynamoDbShadows {
    fn layout(&self) -> Layout {
        self.config.layout
    }

    async fn read(
        &self,
        read: &Read,
        consistency: ReadConsistency,
    ) -> Result<Snapshot, StoreError> {
        self.read_one(read, consistency).await
    }

    async fn read_many(
        &self,
        reads: &[Read],
        consistency: ReadConsistency,
    ) -> Vec<Result<Snapshot, StoreError>> {
        self.read_all(reads, consistency).await
    }

    async fn write(&self, write: &Write) -> Result<Written, StoreError> {
        self.write_one(write).await
    }

    async fn delete(&self, delete: &Delete, now: Timestamp) -> Result<(), StoreError> {
        self.delete_one(delete, now).await
    }

    async fn list(
        &self,
        query: &ListQuery,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<DocumentSummary>, StoreError> {
        self.list_page(query, limit, cursor).await
    }
}
