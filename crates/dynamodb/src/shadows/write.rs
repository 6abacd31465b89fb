//! Writes: conditional on the version, both documents of one shadow together.

use antumbra_service::shadows::adapter::{check_write, item_bytes};
use antumbra_service::shadows::{Layout, NewDocument, PersistenceError, Write, Written};

use super::DynamoDbShadows;
use super::change::Change;
use super::item;
use super::keys::Kind;
use super::lanes::{lanes, run};

impl DynamoDbShadows {
    pub(super) async fn write_all(
        &self,
        writes: &[Write],
    ) -> Vec<Result<Written, PersistenceError>> {
        let lanes = lanes(writes.iter().map(|write| &write.shadow));
        let lanes = lanes.into_iter().map(async |places| {
            let mut results = Vec::with_capacity(places.len());
            for place in places {
                results.push((place, self.write_one(&writes[place]).await));
            }
            results
        });
        run(self.config.fan_out, lanes.collect()).await
    }

    async fn write_one(&self, write: &Write) -> Result<Written, PersistenceError> {
        check_write(write, self.config.layout)?;
        self.apply(changes(write, self.config.layout)).await?;
        let version = |part: &Option<NewDocument>| part.as_ref().map(|part| part.expected.next());
        Ok(Written {
            reported: version(&write.reported),
            desired: version(&write.desired),
        })
    }
}

fn changes(write: &Write, layout: Layout) -> Vec<Change> {
    let put = |kind: Kind, part: &NewDocument| Change::Put {
        item: item::encode(write, kind, part.expected.next()),
        kind,
        expected: part.expected,
        bytes: item_bytes(write, kind.states()),
    };
    let (reported, desired) = (write.reported.iter(), write.desired.iter());
    match layout {
        Layout::Combined => reported.map(|part| put(Kind::Combined, part)).collect(),
        Layout::Separate => reported
            .map(|part| put(Kind::Reported, part))
            .chain(desired.map(|part| put(Kind::Desired, part)))
            .collect(),
    }
}
