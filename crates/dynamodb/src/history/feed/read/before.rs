//! The feed backwards: the changes before a position, newest first.

use std::collections::{HashSet, VecDeque};

use antumbra_service::history::feed::{
    EarlierChanges, FeedCursor, FeedError, FeedFilter, FeedPosition, FeedStart,
};
use antumbra_service::paging::page_limit;
use antumbra_service::store::StoreError;
use antumbra_shadow::Timestamp;
use antumbra_wire::history::SegmentEntry;
use futures_util::future;
use futures_util::stream::{self, StreamExt as _};

use super::{Feed, LOADED, READS_AT_ONCE, Segment, Step, entry_place, segments_between};
use crate::history::item;
use crate::value::seconds;

/// Segments of a partition that are read. One holds the changes of one invocation of the writer.
const SEGMENTS: usize = 50;

/// Changes of one partition before a position, newest first.
struct Backwards {
    steps: VecDeque<Step>,
    /// There are earlier segments, which were not read.
    has_more: bool,
}

impl Feed {
    /// Returns the changes before a position, newest first, and the position before them. One query per partition, and
    /// one batch for every hundred changes. A page can be short or empty although there are earlier changes.
    pub async fn before(
        &self,
        start: &FeedStart,
        limit: usize,
    ) -> Result<EarlierChanges, FeedError> {
        page_limit(limit)?;
        let Some(settings) = self.settings().await? else {
            return Ok(EarlierChanges::default());
        };
        let now = self.clock.now();
        let mut cursor = self.cursor(&settings, start, now).await?;
        let positions = cursor.positions.iter().enumerate();
        let reads =
            positions.map(|(partition, position)| self.backwards(partition as u32, *position, now));
        let partitions = future::try_join_all(reads).await?;
        let (mut entries, has_more) = newest(partitions, &mut cursor, limit);
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.key.time));
        let mut changes = Vec::new();
        for some in entries.chunks(LOADED) {
            let keys = some.iter().map(|entry| entry_place(&entry.key)).collect();
            let mut found = self.load(keys).await?;
            let filter = FeedFilter::default();
            let read = some.iter().filter_map(|entry| {
                let stored = found.remove(&entry_place(&entry.key))?;
                let is_kept = !item::has_expired(&stored, now);
                is_kept.then(|| self.change(entry.clone(), stored, &filter, now))
            });
            let mut read = stream::iter(read.collect::<Vec<_>>()).buffered(READS_AT_ONCE);
            while let Some(change) = read.next().await {
                changes.extend(change?);
            }
        }
        Ok(EarlierChanges {
            changes,
            before: has_more.then(|| cursor.seal()),
            kept_days: settings.days,
        })
    }

    /// The changes of a partition before a position.
    async fn backwards(
        &self,
        partition: u32,
        position: FeedPosition,
        now: Timestamp,
    ) -> Result<Backwards, StoreError> {
        let query = segments_between(partition, 0, position.number);
        let query = query.descending(true).limit(SEGMENTS);
        let found = self.reader.history.table.query(query).await?;
        let mut backwards = Backwards {
            steps: VecDeque::new(),
            has_more: found.last.is_some(),
        };
        for item in &found.items {
            let segment = Segment::decode(item)?;
            if segment.expires <= seconds(now) {
                // So have all before it.
                backwards.has_more = false;
                break;
            }
            let before = match segment.number == position.number {
                true => position.offset,
                false => usize::MAX,
            };
            let entries = segment.entries.into_iter().enumerate().take(before);
            for (offset, entry) in entries.collect::<Vec<_>>().into_iter().rev() {
                backwards.steps.push_back(Step {
                    partition: partition as usize,
                    position: FeedPosition {
                        number: segment.number,
                        offset,
                        since: segment.reserved_at,
                    },
                    entry,
                });
            }
        }
        Ok(backwards)
    }
}

/// Takes the newest changes of all partitions, and moves the cursor before them. Stops where the next change of a
/// partition was not read. Returns whether there are earlier changes.
fn newest(
    mut partitions: Vec<Backwards>,
    cursor: &mut FeedCursor,
    limit: usize,
) -> (Vec<SegmentEntry>, bool) {
    let mut entries = Vec::new();
    // A change may be recorded twice.
    let mut seen = HashSet::new();
    loop {
        let is_unread = |one: &Backwards| one.steps.is_empty() && one.has_more;
        if partitions.iter().any(is_unread) {
            return (entries, true);
        }
        let heads = partitions.iter().enumerate();
        let heads = heads.filter_map(|(at, one)| Some((one.steps.front()?.entry.key.time, at)));
        let Some((_, at)) = heads.max() else {
            return (entries, false);
        };
        if entries.len() == limit {
            return (entries, true);
        }
        let Some(step) = partitions[at].steps.pop_front() else {
            return (entries, false);
        };
        cursor.positions[step.partition] = step.position;
        if seen.insert(step.entry.change_id.clone()) {
            entries.push(step.entry);
        }
    }
}
