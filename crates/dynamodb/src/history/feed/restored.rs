//! Cursors from before a restore of the table.
//!
//! A restored table has earlier counters, and gives the numbers behind a newer cursor to other changes, which a reader would
//! skip. Such a cursor is answered as an expired one, with the oldest position.

use antumbra_service::history::feed::{FeedCursor, FeedPosition};
use antumbra_service::store::StoreError;
use antumbra_wire::history::FeedKey;

use super::read::Feed;
use super::{LAST, RESERVATION, RESERVED_AT, place};
use crate::table::BatchRead;
use crate::value::optional_number;

/// The last segment before a position, or the one that it is in; none at the start.
fn last_read(position: &FeedPosition) -> u64 {
    match position.offset {
        0 => position.number.saturating_sub(1),
        _ => position.number,
    }
}

impl Feed {
    /// Returns whether the table was restored to a time before a cursor. The number of the segment that was read last is
    /// then not reserved yet, or was reserved again later.
    pub(super) async fn was_restored(&self, cursor: &FeedCursor) -> Result<bool, StoreError> {
        // Half price; what was written a moment ago may be missing, so it decides only that all is well.
        for read in [BatchRead::EVENTUAL, BatchRead::CONSISTENT] {
            if !self.seems_restored(cursor, read).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn seems_restored(
        &self,
        cursor: &FeedCursor,
        read: BatchRead,
    ) -> Result<bool, StoreError> {
        let positions = || (0..).zip(&cursor.positions);
        let counter = |partition| place(FeedKey::Counter { partition });
        let segment = |partition, position| {
            let number = last_read(position);
            place(FeedKey::Segment { partition, number })
        };
        let keys = positions()
            .flat_map(|(partition, position)| [counter(partition), segment(partition, position)]);
        let found = self.table().get_many(keys.collect(), read).await?;
        for (partition, position) in positions() {
            let counter = found.get(&counter(partition));
            let reserved: Option<u64> = match counter {
                Some(counter) => optional_number(counter, LAST)?,
                None => None,
            };
            if last_read(position) > reserved.unwrap_or(0) {
                return Ok(true);
            }
            let Some(segment) = found.get(&segment(partition, position)) else {
                continue;
            };
            let reserved_at: u64 = optional_number(segment, RESERVED_AT)?.unwrap_or(0);
            // Clocks differ by less than a restore takes.
            let latest = position
                .since
                .saturating_add(RESERVATION.as_millis() as u64);
            if reserved_at > latest {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
