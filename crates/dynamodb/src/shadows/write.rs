//! A write of one shadow as changes of its items.

use antumbra_service::shadows::adapter::item_bytes;
use antumbra_service::shadows::{Layout, NewDocument, Version, Write};
use antumbra_wire::items::ShadowItem;

use super::change::{Change, Put};
use super::{DynamoDbShadows, item, keys};

impl DynamoDbShadows {
    pub(super) fn changes(&self, write: &Write) -> Vec<Change> {
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
        let other =
            Change::check_other(&write.shadow, write.reported.is_some(), write.other_version);
        let (reported, desired) = (write.reported.iter(), write.desired.iter());
        match self.config.layout {
            Layout::Combined => reported
                .map(|part| put(ShadowItem::Combined, part))
                .collect(),
            Layout::Separate => reported
                .map(|part| put(ShadowItem::Reported, part))
                .chain(desired.map(|part| put(ShadowItem::Desired, part)))
                .chain(other)
                .collect(),
        }
    }
}
