//! Purge of a shadow's past: an item of the main table until it is done, in the index of all purges.
//!
//! The past is in the history table. The item stores the position there, so that a purge examines each entry once however
//! often it stops. When the past is deleted, the purge waits until no writer can be running that missed the marker, and
//! examines the past once more, from its start.

use std::time::Duration;

use antumbra_service::clock::Clock;
use antumbra_service::sensors::reading_time::milliseconds;
use antumbra_service::shadows::{ShadowId, StoreError};
use antumbra_shadow::Timestamp;
use antumbra_wire::items::{ItemKey, ItemKind, index_keys};

use super::DynamoDbShadows;
use crate::history::DynamoDbHistory;
use crate::table::{Item, Key, Table, Write};
use crate::value::{number, optional_number, read_number, text};

/// Shards of the index of purges.
pub(crate) const PURGE_SHARDS: u32 = 16;
/// Attribute with the time up to which changes are purged, in nanoseconds since 1970.
const UNTIL: &str = "until";
/// Attribute with the sort key to continue after.
pub(crate) const POSITION: &str = "position";
/// Attribute with the time at which a purge began to examine its items from the first, in milliseconds since 1970. Beside
/// the position.
const PASS_STARTED_AT: &str = "passStartedAt";
/// Attribute with the time until which a purge is kept, in milliseconds since 1970.
const KEPT_UNTIL: &str = "keptUntil";
/// Time a purge is kept after its marker is written: longer than the timeout of the writer, and than a read lags behind.
const KEPT: Duration = Duration::from_secs(20 * 60);

/// Result of a step of a purge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PurgeStep {
    /// Items that were deleted.
    pub deleted: usize,
    /// State of the purge after the step.
    pub state: PurgeState,
}

/// State of a purge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PurgeState {
    /// More entries are to be examined.
    Deletes,
    /// Nothing is left; the past is examined once more at this time.
    WaitsUntil(Timestamp),
    /// The purge is done.
    Done,
}

impl DynamoDbShadows {
    /// Queues the purge of a shadow's past up to a time. One that is queued already goes on if it reaches as far.
    pub async fn queue_purge(
        &self,
        shadow: &ShadowId,
        until: Timestamp,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let until = u64::try_from(until.nanoseconds()).unwrap_or_default();
        let queue = "SET #until = :until, #liveShard = :shard, #checkAt = :now \
            REMOVE #position, #passStartedAt, #keptUntil";
        let shard = format!("{}#{}", shadow.id(), shadow.name());
        let shard = antumbra_service::shard(&shard, PURGE_SHARDS);
        let queue = Write::update(key(shadow), queue)
            .condition("attribute_not_exists(#until) OR #until < :until")
            .value(":until", number(until))
            .value(":shard", text(index_keys::purge_shard(shard)))
            .value(":now", number(milliseconds(now)));
        self.table.write(queue).await?;
        Ok(())
    }

    /// Carries out a step of the purge of a shadow's past, also before it is due. Any number of callers may do so.
    pub async fn purge_step(
        &self,
        history: &DynamoDbHistory,
        shadow: &ShadowId,
        now: Timestamp,
    ) -> Result<PurgeStep, StoreError> {
        step(&self.table, history, shadow, now).await
    }

    /// Carries out steps of the purge of a shadow's past until nothing is left to delete now. Calls `progress` with the
    /// number of items that each deleted, and returns that of all.
    pub async fn delete_past(
        &self,
        history: &DynamoDbHistory,
        shadow: &ShadowId,
        clock: &dyn Clock,
        progress: impl Fn(usize),
    ) -> Result<PurgeStep, StoreError> {
        let mut deleted = 0;
        loop {
            let step = self.purge_step(history, shadow, clock.now()).await?;
            progress(step.deleted);
            deleted += step.deleted;
            if step.state != PurgeState::Deletes {
                return Ok(PurgeStep { deleted, ..step });
            }
        }
    }
}

/// Carries out a step of a purge in the main table.
pub(crate) async fn step(
    table: &Table,
    history: &DynamoDbHistory,
    shadow: &ShadowId,
    now: Timestamp,
) -> Result<PurgeStep, StoreError> {
    let key = key(shadow);
    let Some(stored) = table.get(&key).await? else {
        return Ok(PurgeStep {
            deleted: 0,
            state: PurgeState::Done,
        });
    };
    let until: u64 = read_number(&stored, UNTIL)?;
    // Another request may have queued a purge that reaches further, or another sweep finished this one.
    let this = |write: Write| {
        let write = write.condition("#until = :until");
        table.write(write.value(":until", number(until)))
    };
    let kept_until: i64 = match optional_number(&stored, KEPT_UNTIL)? {
        Some(kept_until) => kept_until,
        None => {
            history.mark_purged(shadow, until, now).await?;
            let kept_until = milliseconds(now.after(KEPT));
            let keep = Write::update(key.clone(), "SET #keptUntil = :keptUntil");
            this(keep.value(":keptUntil", number(kept_until))).await?;
            kept_until
        }
    };
    let position = stored.get(POSITION).and_then(|at| at.as_s().ok());
    let started_at = pass_started_at(&stored, now)?;
    let part = history.delete_past(shadow, until, position.map(String::as_str));
    let part = part.await?;
    let state = match part.next {
        Some(_) => PurgeState::Deletes,
        None if started_at >= kept_until => PurgeState::Done,
        None if milliseconds(now) >= kept_until => PurgeState::Deletes,
        None => PurgeState::WaitsUntil(Timestamp::from_nanoseconds(
            i128::from(kept_until) * 1_000_000,
        )),
    };
    let write = match (part.next, state) {
        (Some(position), _) => continue_at(key, &position, started_at, now),
        (None, PurgeState::Done) => Write::delete(key),
        (None, _) => start_again(key),
    };
    this(write).await?;
    Ok(PurgeStep {
        deleted: part.deleted,
        state,
    })
}

/// The time at which a purge began to examine its items from the first.
pub(crate) fn pass_started_at(purge: &Item, now: Timestamp) -> Result<i64, StoreError> {
    match purge.contains_key(POSITION) {
        true => Ok(optional_number(purge, PASS_STARTED_AT)?.unwrap_or(0)),
        false => Ok(milliseconds(now)),
    }
}

/// Keeps the position of a purge.
pub(crate) fn continue_at(key: Key, position: &str, started_at: i64, now: Timestamp) -> Write {
    let update = "SET #position = :position, #passStartedAt = :startedAt, #checkAt = :now";
    Write::update(key, update)
        .value(":position", text(position))
        .value(":startedAt", number(started_at))
        .value(":now", number(milliseconds(now)))
}

/// Lets a purge examine its items again when none can be added any more.
pub(crate) fn start_again(key: Key) -> Write {
    let update = "SET #checkAt = #keptUntil REMOVE #position, #passStartedAt";
    Write::update(key, update)
}

fn key(shadow: &ShadowId) -> Key {
    Key::new(ItemKind::ShadowPurge, shadow.id(), shadow.name())
}

/// The shadow of a purge, by its key; `None` for items of other kinds.
pub(crate) fn purged_shadow(key: &Key) -> Option<ShadowId> {
    match ItemKey::parse(&key.partition, &key.sort) {
        ItemKey::Known(ItemKind::ShadowPurge, id, name) => ShadowId::named(id, name).ok(),
        _ => None,
    }
}
