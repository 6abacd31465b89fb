//! Reads of shadows: items in batches, and both documents of one instant in transactions.

use std::collections::HashSet;

use antumbra_service::shadows::{Read, ReadConsistency, Snapshot, State, StoreError};
use futures_util::future;

use super::{DynamoDbShadows, item, keys};
use crate::table::{BatchRead, Found, Key};

impl DynamoDbShadows {
    pub(super) async fn read_one(
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

    pub(super) async fn read_all(
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

    /// Returns whether the documents are in several items; one item always has the state of one instant.
    fn needs_transaction(&self, read: &Read, consistency: ReadConsistency) -> bool {
        let items = keys::items(self.config.layout, read.parts);
        consistency == ReadConsistency::Snapshot && items.len() > 1
    }

    fn batch_read(&self, consistency: ReadConsistency) -> BatchRead {
        BatchRead {
            consistent: consistency != ReadConsistency::Eventual,
            attempts: self.config.read_attempts,
            fan_out: self.config.fan_out.get(),
        }
    }

    fn keys<'a>(&self, read: &'a Read) -> impl Iterator<Item = Key> + use<'a> {
        let items = keys::items(self.config.layout, read.parts).iter();
        items.map(|item| keys::key(&read.shadow, *item))
    }

    fn assemble(&self, read: &Read, found: &Found) -> Result<Snapshot, StoreError> {
        let mut snapshot = Snapshot::default();
        for kind in keys::items(self.config.layout, read.parts) {
            let item = match found.get(&keys::key(&read.shadow, *kind)) {
                Some(Ok(Some(item))) => item,
                Some(Ok(None)) => continue,
                Some(Err(error)) => return Err(error.clone()),
                None => {
                    let missing = "a key is missing in DynamoDB's response".to_owned();
                    return Err(StoreError::Unavailable(missing));
                }
            };
            let found = item::decode(item, *kind)?;
            snapshot.deleted.at = snapshot.deleted.at.max(found.deleted.at);
            if read.parts.has(State::Reported) {
                snapshot.reported = snapshot.reported.or(found.reported);
                snapshot.deleted.reported = snapshot.deleted.reported.max(found.deleted.reported);
            }
            if read.parts.has(State::Desired) {
                snapshot.desired = snapshot.desired.or(found.desired);
                snapshot.deleted.desired = snapshot.deleted.desired.max(found.deleted.desired);
            }
        }
        if snapshot == Snapshot::default() {
            return Err(StoreError::NotFound);
        }
        Ok(snapshot)
    }
}
