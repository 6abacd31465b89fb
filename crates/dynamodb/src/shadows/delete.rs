//! Deletes: of a version or of whatever is there, both documents of one shadow together.

use antumbra_service::shadows::adapter::check_delete;
use antumbra_service::shadows::{Delete, ExpectedVersion, Layout, StoreError};
use antumbra_shadow::Timestamp;

use super::DynamoDbShadows;
use super::change::Change;
use super::keys::{Key, Kind};

impl DynamoDbShadows {
    pub(super) async fn delete_one(
        &self,
        delete: &Delete,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        check_delete(delete, self.config.layout)?;
        let changes = changes(delete, self.config.layout, now);
        self.apply(changes).await.map(drop)
    }
}

fn changes(delete: &Delete, layout: Layout, now: Timestamp) -> Vec<Change> {
    let remove = |kind: Kind, expect: ExpectedVersion| Change::Delete {
        key: Key::new(&delete.shadow, kind),
        expected: match expect {
            ExpectedVersion::Any => None,
            ExpectedVersion::Version(version) => Some(version),
        },
        now,
    };
    let (reported, desired) = (delete.reported.into_iter(), delete.desired.into_iter());
    match layout {
        Layout::Combined => reported
            .map(|expect| remove(Kind::Combined, expect))
            .collect(),
        Layout::Separate => reported
            .map(|expect| remove(Kind::Reported, expect))
            .chain(desired.map(|expect| remove(Kind::Desired, expect)))
            .collect(),
    }
}
