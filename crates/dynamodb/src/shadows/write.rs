//! Writes and deletes of one shadow, as changes of its items.

use antumbra_service::shadows::adapter::{check_delete, check_write, item_bytes};
use antumbra_service::shadows::{
    Delete, ExpectedVersion, Layout, NewDocument, State, StoreError, Version, Write, Written,
};
use antumbra_shadow::Timestamp;
use antumbra_wire::items::ShadowItem;

use super::change::{Change, Put};
use super::{DynamoDbShadows, item, keys};

impl DynamoDbShadows {
    pub(super) async fn write_one(&self, write: &Write) -> Result<Written, StoreError> {
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

    fn changes(&self, write: &Write) -> Vec<Change> {
        let put = |kind: ShadowItem, part: &NewDocument| {
            if part.times_only {
                return Change::Times {
                    key: keys::key(&write.shadow, kind),
                    times: item::encode_times(write, kind, part.expected_times + 1),
                    expected: part.expected,
                    expected_times: part.expected_times,
                };
            }
            let version = match part.expected {
                Version::NONE => part.min_version.next(),
                expected => expected.next(),
            };
            Change::Put(Put {
                item: item::encode(&self.table, write, kind, version),
                kind,
                expected: part.expected,
                expected_times: part.expected_times,
                min_version: part.min_version,
                replaces: None,
                now: write.timestamp,
                bytes: item_bytes(write, kind.states()),
            })
        };
        let other = match write.reported {
            Some(_) => ShadowItem::Desired,
            None => ShadowItem::Reported,
        };
        let check = write.other_version.map(|expected| Change::Check {
            key: keys::key(&write.shadow, other),
            expected,
        });
        let (reported, desired) = (write.reported.iter(), write.desired.iter());
        match self.config.layout {
            Layout::Combined => reported
                .map(|part| put(ShadowItem::Combined, part))
                .collect(),
            Layout::Separate => reported
                .map(|part| put(ShadowItem::Reported, part))
                .chain(desired.map(|part| put(ShadowItem::Desired, part)))
                .chain(check)
                .collect(),
        }
    }

    pub(super) async fn delete_one(
        &self,
        delete: &Delete,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let layout = self.config.layout;
        check_delete(delete, layout)?;
        let remove = |kind: ShadowItem, expected: ExpectedVersion| Change::Delete {
            key: keys::key(&delete.shadow, kind),
            expected,
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
            ]
            .into_iter()
            .flatten()
            .collect(),
        };
        self.apply(changes).await.map(drop)
    }
}
