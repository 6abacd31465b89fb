//! Reads of shadows: items in batches, and both documents of one instant in transactions.

use antumbra_service::shadows::{Read, ReadConsistency, Snapshot, State, StoreError};

use super::{DynamoDbShadows, item, keys};
use crate::table::{BatchRead, Found, Key};

impl DynamoDbShadows {
    /// Returns whether the documents are in several items; one item always has the state of one instant.
    pub(super) fn needs_transaction(&self, read: &Read, consistency: ReadConsistency) -> bool {
        let items = keys::items(self.config.layout, read.parts);
        consistency == ReadConsistency::Snapshot && items.len() > 1
    }

    pub(super) fn batch_read(&self, consistency: ReadConsistency) -> BatchRead {
        BatchRead {
            consistent: consistency != ReadConsistency::Eventual,
            attempts: self.config.read_attempts,
            fan_out: self.config.fan_out.get(),
        }
    }

    pub(super) fn keys<'a>(&self, read: &'a Read) -> impl Iterator<Item = Key> + use<'a> {
        let items = keys::items(self.config.layout, read.parts).iter();
        items.map(|item| keys::key(&read.shadow, *item))
    }

    pub(super) fn assemble(&self, read: &Read, found: &Found) -> Result<Snapshot, StoreError> {
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
            for (index, state) in [State::Reported, State::Desired].into_iter().enumerate() {
                if read.parts.has(state) {
                    let (all, found) = (&mut snapshot.deleted, &found.deleted);
                    all.written[index] = found.written[index].or(all.written[index]);
                    all.previous[index] = found.previous[index].or(all.previous[index]);
                }
            }
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
