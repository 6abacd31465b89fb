//! Shadows in the main table.
//!
//! A table keeps both documents of a shadow in one item or in one item each, by its layout. A deleted item
//! keeps its version, `timestamp`, `deletedAt` and `ttl` for two days. The table may hold items of other programs, which
//! are ignored.

mod change;
mod fleet;
mod item;
mod keys;
mod list;
pub(crate) mod purge;
mod read;
mod snapshot;
mod write;

use std::collections::HashSet;
use std::num::NonZeroUsize;

use antumbra_service::access::IdRanges;
use antumbra_service::shadows::adapter::{check_delete, check_write};
use antumbra_service::shadows::{
    Cursor, Delete, DocumentSummary, ExpectedVersion, Layout, Page, Read, ReadConsistency,
    ShadowId, ShadowStore, Snapshot, State, StoreError, Write, Written,
};
use antumbra_shadow::Timestamp;
use antumbra_wire::items::ShadowItem;
use aws_sdk_dynamodb::Client;
use futures_util::future;

use self::change::Change;
pub use self::purge::{PurgeState, PurgeStep};
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
        let found = if self.needs_transaction(read, consistency) {
            self.get_snapshots(&[&read.shadow]).await
        } else {
            let keys = self.keys(read).collect();
            self.table
                .get_each(keys, self.batch_read(consistency))
                .await
        };
        self.assemble(read, &found)
    }

    async fn read_many(
        &self,
        reads: &[Read],
        consistency: ReadConsistency,
    ) -> Vec<Result<Snapshot, StoreError>> {
        let transacted = |read: &&Read| self.needs_transaction(read, consistency);
        let (in_transactions, in_batches): (Vec<&Read>, Vec<&Read>) =
            reads.iter().partition(transacted);
        let keys = in_batches.iter().flat_map(|read| self.keys(read)).collect();
        let mut seen = HashSet::new();
        let shadows = in_transactions.iter().map(|read| &read.shadow);
        let shadows: Vec<_> = shadows.filter(|shadow| seen.insert(*shadow)).collect();
        let calls = future::join(
            self.table.get_each(keys, self.batch_read(consistency)),
            self.get_snapshots(&shadows),
        );
        let (batches, snapshots) = calls.await;
        let found = |read| match transacted(&read) {
            true => &snapshots,
            false => &batches,
        };
        reads
            .iter()
            .map(|read| self.assemble(read, found(read)))
            .collect()
    }

    async fn write(&self, write: &Write) -> Result<Written, StoreError> {
        check_write(write, self.config.layout)?;
        let applied = self.apply(self.changes(write)).await?;
        let version = |state: State| {
            applied.iter().find_map(|change| match change {
                Change::Put(put) if put.kind.states().contains(&state) => Some(put.version()),
                _ => None,
            })
        };
        Ok(Written {
            reported: version(State::Reported),
            desired: version(State::Desired),
        })
    }

    async fn delete(&self, delete: &Delete, now: Timestamp) -> Result<(), StoreError> {
        let layout = self.config.layout;
        check_delete(delete, layout)?;
        let remove = |kind: ShadowItem, expected: ExpectedVersion| Change::Delete {
            key: keys::key(&delete.shadow, kind),
            expected,
            deleted_at: delete.time.unwrap_or(now),
            now,
        };
        let (reported, desired) = (delete.reported, delete.desired);
        let changes = match layout {
            Layout::Combined => reported
                .map(|expected| remove(ShadowItem::Combined, expected))
                .into_iter()
                .collect(),
            Layout::Separate => [
                reported.map(|expected| remove(ShadowItem::Reported, expected)),
                desired.map(|expected| remove(ShadowItem::Desired, expected)),
                Change::check_other(&delete.shadow, reported.is_some(), delete.other_version),
            ]
            .into_iter()
            .flatten()
            .collect(),
        };
        self.apply(changes).await.map(drop)
    }

    async fn list(
        &self,
        id: &str,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<DocumentSummary>, StoreError> {
        self.list_page(id, limit, cursor).await
    }

    async fn list_by_prefix(
        &self,
        prefix: &str,
        within: &IdRanges,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<ShadowId>, StoreError> {
        self.list_fleet(prefix, within, limit, cursor).await
    }
}
