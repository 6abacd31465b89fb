//! Writes: conditional on the version, both documents of one shadow together.

use antumbra_service::shadows::adapter::{check_write, item_bytes};
use antumbra_service::shadows::{Layout, NewDocument, State, StoreError, Version, Write, Written};

use super::DynamoDbShadows;
use super::change::{Change, Put};
use super::item;
use super::keys::{Key, Kind};

impl DynamoDbShadows {
    pub(super) async fn write_one(&self, write: &Write) -> Result<Written, StoreError> {
        check_write(write, self.config.layout)?;
        let applied = self.apply(changes(write, self.config.layout)).await?;
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
}

fn changes(write: &Write, layout: Layout) -> Vec<Change> {
    let put = |kind: Kind, part: &NewDocument| {
        let version = match part.expected {
            Version::NONE => part.min_version.next(),
            expected => expected.next(),
        };
        Change::Put(Put {
            item: item::encode(write, kind, version),
            kind,
            expected: part.expected,
            floor: part.min_version,
            over: None,
            now: write.timestamp,
            bytes: item_bytes(write, kind.states()),
        })
    };
    let unwritten = match write.reported {
        Some(_) => Kind::Desired,
        None => Kind::Reported,
    };
    let hold = write.other_version.map(|expected| Change::Hold {
        key: Key::new(&write.shadow, unwritten),
        expected,
    });
    let (reported, desired) = (write.reported.iter(), write.desired.iter());
    match layout {
        Layout::Combined => reported.map(|part| put(Kind::Combined, part)).collect(),
        Layout::Separate => reported
            .map(|part| put(Kind::Reported, part))
            .chain(desired.map(|part| put(Kind::Desired, part)))
            .chain(hold)
            .collect(),
    }
}
