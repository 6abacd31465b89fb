//! Changes of a shadow's items: a single one is one call, several are one transaction.
//!
//! A delete leaves the item's version for a while, and a document that is created in its place continues
//! from it. Creating first puts the item where none is stored; only if a deleted one is found there does a
//! second call replace that one.

use antumbra_service::shadows::{ExpectedVersion, ShadowId, StoreError, VERSION_KEPT, Version};
use antumbra_shadow::Timestamp;
use antumbra_wire::items::ShadowItem;
use antumbra_wire::items::attributes::VERSION;

use super::DynamoDbShadows;
use super::{item, keys};
use crate::table::{ABSENT, Item, Key, Outcome, Refusal, Write};
use crate::value::{number, seconds};

const EXISTS: &str = "attribute_exists(#PK) AND attribute_not_exists(#deletedAt)";
const ABSENT_OR_DELETED: &str = "attribute_not_exists(#PK) OR attribute_exists(#deletedAt)";
const HAS_VERSION: &str = "#version = :expected AND attribute_not_exists(#deletedAt)";
const HAS_FIRST_TIMES: &str = " AND attribute_not_exists(#timesVersion)";
const HAS_TIMES: &str = " AND #timesVersion = :times";
const DELETED_WITH_VERSION: &str = "#version = :expected AND attribute_exists(#deletedAt)";
/// Leaves the key, the version, and the times of the delete, of this write and the one before, and of the expiry.
const DELETE: &str = "SET #deletedAt = :deletedAt, #timestamp = :now, #ttl = :ttl, \
    #previousTimestamp = if_not_exists(#timestamp, :now) \
    REMOVE #reported, #desired, #reportedTimes, #desiredTimes, #timesVersion, #tz, #clientToken, \
    #acknowledged, #fleetShard, #fleetKey";

#[derive(Debug, Clone)]
pub(super) enum Change {
    Put(Put),
    /// Writes the times of leaves only.
    Times {
        key: Key,
        times: Item,
        expected: Version,
        expected_times: i64,
    },
    /// Deletes the item, if it has the expected version where one is given.
    Delete {
        key: Key,
        expected: ExpectedVersion,
        /// Messages from before this time do not bring the document back.
        deleted_at: Timestamp,
        now: Timestamp,
    },
    /// Changes nothing, but requires the expected version.
    Check {
        key: Key,
        expected: Version,
    },
}

/// An item that replaces the one with the expected version.
#[derive(Debug, Clone)]
pub(super) struct Put {
    pub(super) item: Item,
    pub(super) kind: ShadowItem,
    pub(super) expected: Version,
    pub(super) expected_times: i64,
    /// A created document gets a version above this one.
    pub(super) min_version: Version,
    /// Version of the deleted item that this one replaces.
    pub(super) replaces: Option<Version>,
    pub(super) now: Timestamp,
    pub(super) bytes: usize,
}

impl Put {
    /// Returns the version that the item is stored with.
    pub(super) fn version(&self) -> Version {
        item::version(&self.item).unwrap_or_default()
    }

    /// Returns the same item in place of a deleted one.
    fn replacing(&self, deleted: &Item) -> Put {
        let before = item::remembered_version(deleted, self.now).max(self.min_version);
        let mut put = self.clone();
        put.item.insert(VERSION.to_owned(), number(before.next()));
        put.replaces = Some(item::version(deleted).unwrap_or_default());
        put
    }
}

impl Change {
    /// The condition on the version of the document that is not changed, if there is one.
    pub(super) fn check_other(
        shadow: &ShadowId,
        changes_reported: bool,
        expected: Option<Version>,
    ) -> Option<Change> {
        let other = match changes_reported {
            true => ShadowItem::Desired,
            false => ShadowItem::Reported,
        };
        expected.map(|expected| Change::Check {
            key: keys::key(shadow, other),
            expected,
        })
    }

    fn write(&self) -> Write {
        match self {
            Change::Put(put) => {
                let write = Write::put(put.item.clone()).bytes(put.bytes);
                match (put.expected, put.replaces) {
                    (Version::NONE, None) => write.condition(ABSENT),
                    (Version::NONE, Some(deleted)) => write
                        .condition(DELETED_WITH_VERSION)
                        .value(":expected", number(deleted)),
                    (expected, _) => unchanged(write, expected, Some(put.expected_times)),
                }
            }
            Change::Times {
                key,
                times,
                expected,
                expected_times,
            } => {
                let write = Write::set(key.clone(), times.clone(), &[]);
                unchanged(write, *expected, Some(*expected_times))
            }
            Change::Delete {
                key,
                expected,
                deleted_at,
                now,
            } => {
                // Never before the version may be forgotten.
                let ttl = seconds(deleted_at.after(VERSION_KEPT)).saturating_add(1);
                let write = Write::update(key.clone(), DELETE)
                    .value(":deletedAt", number(deleted_at.nanoseconds()))
                    .value(":now", number(now.nanoseconds()))
                    .value(":ttl", number(ttl));
                match expected.parts() {
                    (None, _) => write.condition(EXISTS),
                    (Some(expected), times) => unchanged(write, expected, times),
                }
            }
            Change::Check {
                key,
                expected: Version::NONE,
            } => Write::check(key.clone(), ABSENT_OR_DELETED),
            Change::Check { key, expected } => {
                Write::check(key.clone(), HAS_VERSION).value(":expected", number(expected))
            }
        }
    }

    /// The change to try after a failed condition: another one, or none as there is nothing to do.
    fn alternative(&self, stored: Option<&Item>) -> Option<Option<Change>> {
        let deleted = stored.filter(|item| item::is_deleted(item));
        match self {
            Change::Put(put) if put.expected == Version::NONE && put.replaces.is_none() => {
                let deleted = deleted.filter(|deleted| item::written(deleted) < Some(put.now));
                deleted.map(|deleted| Some(Change::Put(put.replacing(deleted))))
            }
            Change::Delete {
                expected: ExpectedVersion::Any,
                ..
            } => Some(None),
            _ => None,
        }
    }

    fn error(&self, stored: Option<&Item>) -> StoreError {
        let stored = stored.filter(|item| !item::is_deleted(item));
        let actual = stored.and_then(item::version);
        let expected = match self {
            Change::Delete { .. } if stored.is_none() => return StoreError::NotFound,
            Change::Delete { expected, .. } => expected.parts().0.unwrap_or_default(),
            Change::Put(Put { expected, .. })
            | Change::Times { expected, .. }
            | Change::Check { expected, .. } => *expected,
        };
        StoreError::Conflict { expected, actual }
    }

    /// Returns whether the stored item is the result of this change.
    fn already_applied(&self, stored: Option<&Item>) -> bool {
        match (self, stored) {
            (Change::Delete { .. }, stored) => stored.is_none_or(item::is_deleted),
            (Change::Put(put), Some(stored)) => {
                let [ours, stored] = [&put.item, stored].map(|item| item::decode(item, put.kind));
                ours.is_ok() && ours == stored
            }
            (Change::Times { times, .. }, Some(stored)) => {
                let mut times = times.iter();
                times.all(|(name, value)| stored.get(name) == Some(value))
            }
            _ => false,
        }
    }
}

/// The condition that an item has this version, and as many writes of times since.
fn unchanged(write: Write, expected: Version, times: Option<i64>) -> Write {
    let write = write.value(":expected", number(expected));
    match times {
        None => write.condition(HAS_VERSION),
        Some(0) => write.condition(format!("{HAS_VERSION}{HAS_FIRST_TIMES}")),
        Some(times) => write
            .condition(format!("{HAS_VERSION}{HAS_TIMES}"))
            .value(":times", number(times)),
    }
}

impl DynamoDbShadows {
    /// Applies all changes or none, and returns those that were applied.
    pub(super) async fn apply(&self, mut changes: Vec<Change>) -> Result<Vec<Change>, StoreError> {
        // Each change is replaced by its alternative at most once, so the loop ends.
        loop {
            let outcome = match &changes[..] {
                [] => return Ok(changes),
                [only] if !matches!(only, Change::Check { .. }) => {
                    self.table.write(only.write()).await?
                }
                all => {
                    let writes = all.iter().map(Change::write).collect();
                    self.table.transact(writes).await?
                }
            };
            let Refusal {
                at,
                stored,
                in_doubt,
            } = match outcome {
                Outcome::Applied(_) => return Ok(changes),
                Outcome::Refused(refusal) => refusal,
            };
            let stored = stored.as_ref();
            // An earlier attempt of the SDK whose response was lost has applied it.
            if in_doubt && changes[at].already_applied(stored) {
                return Ok(changes);
            }
            if in_doubt {
                return Err(StoreError::Unavailable(format!(
                    "an earlier attempt got no response, the last one: {}",
                    changes[at].error(stored)
                )));
            }
            match changes[at].alternative(stored) {
                Some(Some(change)) => changes[at] = change,
                Some(None) => drop(changes.remove(at)),
                None => return Err(changes[at].error(stored)),
            }
        }
    }
}
