//! Ingest progress: one item per queue in the main table, with `reached` in milliseconds since 1970.

use antumbra_service::liveness::IngestProgress;
use antumbra_service::sensors::reading_time::from_milliseconds;
use antumbra_service::store::StoreError;
use antumbra_shadow::Timestamp;
use antumbra_wire::items::ItemKind;
use aws_sdk_dynamodb::Client;

use crate::table::{Key, Table, Write};
use crate::tables::MAIN;
use crate::value::{epoch_milliseconds, read_number};

/// Ingest progress in a DynamoDB table.
#[derive(Debug, Clone)]
pub struct DynamoDbProgress {
    table: Table,
}

impl DynamoDbProgress {
    /// Uses an existing table.
    pub fn new(client: Client, table: impl Into<String>) -> DynamoDbProgress {
        DynamoDbProgress {
            table: Table::new(client, table, MAIN),
        }
    }
}

fn key(queue: &str) -> Key {
    Key::new(ItemKind::IngestProgress, "", queue)
}

impl IngestProgress for DynamoDbProgress {
    /// One conditional update; an earlier time than the stored one changes nothing.
    async fn note(&self, queue: &str, sent: Timestamp) -> Result<(), StoreError> {
        let update = Write::update(key(queue), "SET #reached = :sent")
            .condition("attribute_not_exists(#reached) OR #reached < :sent")
            .value(":sent", epoch_milliseconds(sent));
        self.table.write(update).await.map(drop)
    }

    async fn reached(&self, queue: &str) -> Result<Option<Timestamp>, StoreError> {
        let found = self.table.get(&key(queue)).await?;
        let reached = found
            .map(|item| read_number(&item, "reached"))
            .transpose()?;
        Ok(reached.map(from_milliseconds))
    }
}
