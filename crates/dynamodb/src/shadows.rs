//! Shadows in the main table.
//!
//! A table keeps both documents of a shadow in one item or in one item each, by its layout. A deleted item
//! keeps its version, `deletedAt` and `ttl` for two days. The table may hold items of other programs, which
//! are ignored.

mod change;
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

use crate::table::Table;
use crate::tables::MAIN;

const DEFAULT_FAN_OUT: NonZeroUsize = NonZeroUsize::new(16).unwrap();
const DEFAULT_READ_ATTEMPTS: u32 = 5;

/// Configuration of a shadow table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShadowTableConfig {
    /// The table's name or ARN.
    pub table: String,
    /// Layout of the two documents of a shadow, the same for the whole table.
    pub layout: Layout,
    /// Calls of one batch that run at the same time.
    pub fan_out: NonZeroUsize,
    /// Calls without progress after which an unprocessed key fails; at least one.
    pub read_attempts: u32,
}

impl ShadowTableConfig {
    /// A table with the defaults: separate items, 16 calls at a time, 5 read attempts.
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

/// Shadows in a DynamoDB table. The client's configuration sets time-outs and retries.
#[derive(Debug, Clone)]
pub struct DynamoDbShadows {
    table: Table,
    config: ShadowTableConfig,
}

#[allow(missing_docs)]
impl DynamoDbShadows {
    pub fn new(client: Client, config: ShadowTableConfig) -> DynamoDbShadows {
        let table = Table::new(client, &config.table, MAIN);
        DynamoDbShadows { table, config }
    }

    /// Uses an existing table with the credentials, region and limits of an SDK configuration.
    pub fn connect(sdk: &aws_types::SdkConfig, config: ShadowTableConfig) -> DynamoDbShadows {
        DynamoDbShadows::new(Client::new(sdk), config)
    }

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
