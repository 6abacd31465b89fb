//! Reading the feed from a cursor.

mod before;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use antumbra_service::clock::{Clock, time_left};
use antumbra_service::history::days;
use antumbra_service::history::feed::{
    FeedChange, FeedCursor, FeedError, FeedFilter, FeedPage, FeedPosition, FeedStart,
};
use antumbra_service::paging::page_limit;
use antumbra_service::shadows::ShadowId;
use antumbra_service::store::StoreError;
use antumbra_shadow::{Patch, Timestamp};
use antumbra_wire::history::{FeedKey, HistoryKey, SegmentEntry, matches};
use futures_util::future;
use futures_util::stream::{self, StreamExt as _};
use tokio::sync::Mutex;

use super::{FeedSettings, LAST, RESERVATION, Segment, milliseconds, place};
use crate::history::changes::{PAGE_BYTES, size};
use crate::history::{HistoryReader, item};
use crate::table::{BatchRead, Item, Key, Query, Table};
use crate::value::{optional_number, seconds};

/// Segments of a partition that one page reads at most.
const SEGMENTS: usize = 16;
/// Changes that are loaded at a time: the keys of one call.
const LOADED: usize = 100;
/// Changes that one page loads at most, of which a filter may drop all.
const PAGE_LOADED: usize = 1000;
/// Time after which a page loads no more changes, so that its cursor is returned before a function times out.
const PAGE_TIME: Duration = Duration::from_secs(5);
/// Changes whose values are read at the same time.
const READS_AT_ONCE: usize = 16;
/// Time for which settings are kept. Only the number of days changes, and matters a day later.
const SETTINGS_KEPT: Duration = Duration::from_secs(60 * 60);
/// Interval between polls of the feed.
const POLL: Duration = Duration::from_millis(500);

/// Reads the change feed.
#[derive(Clone)]
pub struct Feed {
    reader: HistoryReader,
    clock: Arc<dyn Clock>,
    /// The settings, and the time at which they were read.
    settings: Arc<Mutex<Option<(FeedSettings, Timestamp)>>>,
}

/// Segments of one partition that can be read, in order.
struct Stretch {
    segments: VecDeque<Segment>,
    has_more: bool,
}

/// One step through the feed: the position behind a change, and the change.
struct Step {
    partition: usize,
    position: FeedPosition,
    entry: SegmentEntry,
}

impl HistoryReader {
    /// Reads the change feed.
    pub fn feed(self, clock: Arc<dyn Clock>) -> Feed {
        Feed {
            reader: self,
            clock,
            settings: Arc::default(),
        }
    }
}

impl Feed {
    /// Returns changes, in order per document. Waits until there is one that passes the filter, or the time has passed.
    ///
    /// A page can be short or empty although more changes are there.
    pub async fn read(
        &self,
        start: &FeedStart,
        limit: usize,
        wait: Duration,
        filter: &FeedFilter,
    ) -> Result<FeedPage, FeedError> {
        page_limit(limit)?;
        let deadline = self.clock.now().after(wait);
        self.check_restored(start).await?;
        let mut start = start.clone();
        loop {
            let page = self.page(&start, limit, filter).await?;
            let left = time_left(self.clock.now(), deadline);
            if !page.changes.is_empty() || left.is_zero() {
                return Ok(page);
            }
            start = FeedStart::parse(&page.cursor.0);
            if !page.has_more {
                self.clock.sleep(POLL.min(left)).await;
            }
        }
    }

    /// Fails with the oldest cursor if the table was restored to a time before this one.
    async fn check_restored(&self, start: &FeedStart) -> Result<(), FeedError> {
        let (FeedStart::At(_), Some(settings)) = (start, self.settings().await?) else {
            return Ok(());
        };
        let now = self.clock.now();
        let cursor = self.cursor(&settings, start, now).await?;
        if !self.was_restored(&cursor).await? {
            return Ok(());
        }
        let oldest = self.cursor(&settings, &FeedStart::Oldest, now).await?;
        Err(FeedError::Expired {
            oldest: oldest.seal(),
        })
    }

    pub(super) fn table(&self) -> &Table {
        &self.reader.history.table
    }

    async fn page(
        &self,
        start: &FeedStart,
        limit: usize,
        filter: &FeedFilter,
    ) -> Result<FeedPage, FeedError> {
        let Some(settings) = self.settings().await? else {
            return Ok(FeedPage::of_empty_feed());
        };
        // Taken before anything is read: a number that is found empty, and is too old by this time, is never written.
        let now = self.clock.now();
        let mut cursor = self.cursor(&settings, start, now).await?;
        let stretches = self.stretches(&settings, &mut cursor, now).await?;
        let mut has_more = stretches.iter().any(|stretch| stretch.has_more);
        let mut steps = merge(stretches, &cursor).into_iter().peekable();
        let until = self.clock.now().after(PAGE_TIME);
        let (mut changes, mut bytes, mut loaded) = (Vec::new(), 0, 0);
        while steps.peek().is_some()
            && changes.len() < limit
            && bytes < PAGE_BYTES
            && loaded < PAGE_LOADED
            && self.clock.now() < until
        {
            let count = match changes.len() == loaded {
                true => LOADED.min(limit - changes.len()),
                // Some are left out, and so may be those that follow.
                false => LOADED,
            };
            let mut some: Vec<Step> = Vec::new();
            let mut wanted: Vec<Key> = Vec::new();
            while wanted.len() < count
                && let Some(step) = steps.next()
            {
                if selects(filter, &step.entry.key) {
                    wanted.push(entry_place(&step.entry.key));
                }
                some.push(step);
            }
            loaded += wanted.len();
            let mut found = self.load(wanted).await?;
            let read = some.into_iter().map(|step| {
                // An entry that is missing was purged, or is in this page already.
                let stored = found.remove(&entry_place(&step.entry.key));
                let stored = stored.filter(|stored| !item::has_expired(stored, now));
                self.step(step, stored, filter, now)
            });
            // Some need the entry before them.
            let mut read = stream::iter(read.collect::<Vec<_>>()).buffered(READS_AT_ONCE);
            while let Some(step) = read.next().await {
                let (partition, position, change) = step?;
                if changes.len() >= limit || bytes >= PAGE_BYTES {
                    has_more = true;
                    break;
                }
                bytes += change.as_ref().map_or(0, |change| size(&change.change));
                changes.extend(change);
                cursor.positions[partition] = position;
            }
        }
        Ok(FeedPage {
            changes,
            cursor: cursor.seal(),
            has_more: has_more || steps.peek().is_some(),
        })
    }

    /// The settings of the feed; `None` if nothing was written to it.
    async fn settings(&self) -> Result<Option<FeedSettings>, StoreError> {
        let now = self.clock.now();
        let is_fresh = |read: &Timestamp| now < read.after(SETTINGS_KEPT);
        let kept = self.settings.lock().await.clone();
        if let Some((settings, _)) = kept.filter(|(_, read)| is_fresh(read)) {
            return Ok(Some(settings));
        }
        let settings = self.reader.history.feed_settings().await?;
        *self.settings.lock().await = settings.clone().map(|settings| (settings, now));
        Ok(settings)
    }

    /// The position of a start.
    async fn cursor(
        &self,
        settings: &FeedSettings,
        start: &FeedStart,
        now: Timestamp,
    ) -> Result<FeedCursor, FeedError> {
        let positions = match start {
            FeedStart::At(cursor) => {
                let cursor = FeedCursor::open(cursor)?;
                let partitions = settings.partitions as usize;
                return match cursor.feed == settings.feed && cursor.positions.len() == partitions {
                    true => Ok(cursor),
                    false => Err(FeedError::InvalidCursor),
                };
            }
            FeedStart::Now => {
                let ends = (0..settings.partitions).map(|partition| self.end(partition, now));
                future::try_join_all(ends).await?
            }
            FeedStart::Oldest => self.first_since(settings, 0, now).await?,
            FeedStart::Since(time) => {
                let earlier = milliseconds(*time).saturating_sub(RESERVATION.as_millis() as u64);
                self.first_since(settings, earlier, now).await?
            }
        };
        Ok(FeedCursor {
            feed: settings.feed.clone(),
            positions,
        })
    }

    /// The position behind everything that was reserved.
    async fn end(&self, partition: u32, now: Timestamp) -> Result<FeedPosition, StoreError> {
        let table = &self.reader.history.table;
        let counter = table.get(&place(FeedKey::Counter { partition })).await?;
        let last: Option<u64> = match &counter {
            Some(counter) => optional_number(counter, LAST)?,
            None => None,
        };
        Ok(FeedPosition {
            number: last.unwrap_or(0) + 1,
            offset: 0,
            since: milliseconds(now),
        })
    }

    async fn first_since(
        &self,
        settings: &FeedSettings,
        since: u64,
        now: Timestamp,
    ) -> Result<Vec<FeedPosition>, StoreError> {
        let partitions = 0..settings.partitions;
        let first = partitions.map(|partition| self.first_of(partition, 1, since, now));
        future::try_join_all(first).await
    }

    /// The smallest position, from a number on, from which no segment has expired or was reserved before a time. Found by
    /// bisection: DynamoDB may delete expired segments only days later, and they can be millions.
    async fn first_of(
        &self,
        partition: u32,
        from: u64,
        since: u64,
        now: Timestamp,
    ) -> Result<FeedPosition, StoreError> {
        let end = self.end(partition, now).await?;
        let (mut low, mut high) = (from, end.number);
        let (mut probe, mut first) = (low, None);
        while low < high {
            let mut found = self.segments(partition, probe, 1, true).await?.0;
            match found.pop() {
                Some(segment) if segment.expires <= seconds(now) || segment.reserved_at < since => {
                    low = segment.number + 1;
                }
                found => (high, first) = (probe, found),
            }
            probe = low + high.saturating_sub(low) / 2;
        }
        let Some(first) = first else {
            return Ok(FeedPosition { number: low, ..end });
        };
        Ok(FeedPosition {
            // An empty number before it may still be written.
            number: match milliseconds(now) <= settled(&first) {
                true => low,
                false => first.number,
            },
            offset: 0,
            since: first
                .reserved_at
                .saturating_sub(RESERVATION.as_millis() as u64),
        })
    }

    /// Segments from a number on, and whether there are more.
    async fn segments(
        &self,
        partition: u32,
        from: u64,
        limit: usize,
        consistent: bool,
    ) -> Result<(Vec<Segment>, bool), StoreError> {
        let query = Query {
            consistent,
            ..segments_between(partition, from, u64::MAX).limit(limit)
        };
        let found = self.reader.history.table.query(query).await?;
        let segments: Result<Vec<_>, _> = found.items.iter().map(Segment::decode).collect();
        Ok((segments?, found.last.is_some()))
    }

    /// Reads all partitions from a cursor. Fails with the oldest cursor if changes behind this one have expired.
    async fn stretches(
        &self,
        settings: &FeedSettings,
        cursor: &mut FeedCursor,
        now: Timestamp,
    ) -> Result<Vec<Stretch>, FeedError> {
        let positions = cursor.positions.iter_mut().enumerate();
        let reads = positions.map(|(partition, position)| {
            self.stretch(partition as u32, position, settings.days, now)
        });
        let (mut stretches, mut expired) = (Vec::new(), Vec::new());
        for (partition, stretch) in future::try_join_all(reads).await?.into_iter().enumerate() {
            match stretch {
                Some(stretch) => stretches.push(stretch),
                None => expired.push(partition),
            }
        }
        if expired.is_empty() {
            return Ok(stretches);
        }
        for partition in expired {
            let from = cursor.positions[partition].number;
            cursor.positions[partition] = self.first_of(partition as u32, from, 0, now).await?;
        }
        Err(FeedError::Expired {
            oldest: cursor.seal(),
        })
    }

    /// Reads one partition; `None` if changes behind the position have expired. Reads consistently only where that
    /// decides: most of the time there is nothing.
    async fn stretch(
        &self,
        partition: u32,
        position: &mut FeedPosition,
        kept_days: u32,
        now: Timestamp,
    ) -> Result<Option<Stretch>, StoreError> {
        let mut consistent = false;
        loop {
            let read = self.segments(partition, position.number, SEGMENTS, consistent);
            let (mut segments, more) = read.await?;
            let readable = readable(&segments, *position, kept_days, now);
            if !consistent && (readable.passes_gap || readable.has_expired) {
                consistent = true;
                continue;
            }
            if readable.has_expired {
                return Ok(None);
            }
            if segments.is_empty() {
                // The next number may be reserved already, but not for longer than this: it would be written.
                let since = milliseconds(now).saturating_sub(RESERVATION.as_millis() as u64);
                position.since = position.since.max(since);
            }
            let has_more = more && readable.count == segments.len();
            segments.truncate(readable.count);
            return Ok(Some(Stretch {
                segments: segments.into(),
                has_more,
            }));
        }
    }

    /// Entries by their keys. Half price, except for those that are missing.
    async fn load(&self, keys: Vec<Key>) -> Result<HashMap<Key, Item>, StoreError> {
        let table = &self.reader.history.table;
        let (mut found, mut missing) = (HashMap::new(), keys);
        for read in [BatchRead::EVENTUAL, BatchRead::CONSISTENT] {
            if missing.is_empty() {
                break;
            }
            found.extend(table.get_many(missing.clone(), read).await?);
            missing.retain(|key| !found.contains_key(key));
        }
        Ok(found)
    }

    /// The position behind a step, and its change if it has one that the filter lets pass.
    async fn step(
        &self,
        step: Step,
        stored: Option<Item>,
        filter: &FeedFilter,
        now: Timestamp,
    ) -> Result<(usize, FeedPosition, Option<FeedChange>), StoreError> {
        let change = match stored {
            Some(stored) => self.change(step.entry, stored, filter, now).await?,
            None => None,
        };
        Ok((step.partition, step.position, change))
    }

    /// The change of an entry, if the filter lets it pass.
    async fn change(
        &self,
        segment: SegmentEntry,
        stored: Item,
        filter: &FeedFilter,
        now: Timestamp,
    ) -> Result<Option<FeedChange>, StoreError> {
        let key = &segment.key;
        let shadow = match ShadowId::named(&key.id, &key.name) {
            Ok(shadow) => shadow,
            Err(error) => {
                // Nobody could read further.
                tracing::error!(%key, %error, "a change is left out of the feed");
                return Ok(None);
            }
        };
        let entries = [self.reader.history.decode(stored).await?];
        let diffs = self.reader.diffs(&shadow, &entries, now).await?;
        let [entry] = &entries;
        if let Some(pattern) = &filter.pattern {
            let is_unchanged = |diff: &Option<Patch>| diff.as_ref().is_some_and(Patch::is_empty);
            // Where both documents are one item, only those that changed are compared.
            let all_unchanged = diffs.iter().all(|(_, diff)| is_unchanged(diff));
            let is_match = |(state, diff): &(_, Option<Patch>)| match diff {
                Some(diff) if diff.is_empty() && !all_unchanged => Ok(false),
                Some(diff) => matches(pattern, entry, *state, diff, &self.reader.model),
                None => Ok(true),
            };
            let found = diffs.iter().map(is_match).collect::<Result<Vec<_>, _>>();
            if !found.map_err(|_| item::malformed())?.contains(&true) {
                return Ok(None);
            }
        }
        Ok(Some(FeedChange {
            id: segment.change_id,
            item: segment.key.item,
            change: self.reader.recorded(entry, &diffs)?,
            shadow,
        }))
    }
}

impl std::fmt::Debug for Feed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Feed").finish_non_exhaustive()
    }
}

fn entry_place(key: &HistoryKey) -> Key {
    Key {
        partition: key.partition(),
        sort: key.sort(),
    }
}

/// Returns whether a filter selects an entry by its key.
fn selects(filter: &FeedFilter, key: &HistoryKey) -> bool {
    let name = filter.name.as_ref();
    filter.ids.contains(&key.id) && name.is_none_or(|name| *name == key.name)
}

/// Decision on the segments that were found from a position on.
struct Readable {
    /// Number of them that can be read.
    count: usize,
    /// An empty number is passed on the way.
    passes_gap: bool,
    /// Changes behind the position have expired.
    has_expired: bool,
}

/// The last moment at which a smaller number than that of a segment may be written, in milliseconds since 1970.
fn settled(segment: &Segment) -> u64 {
    let reservation = RESERVATION.as_millis() as u64;
    segment.reserved_at.saturating_add(reservation)
}

/// Decides how far segments can be read. Before an empty number it stops, until nobody can write that number any more.
fn readable(segments: &[Segment], from: FeedPosition, kept_days: u32, now: Timestamp) -> Readable {
    let mut readable = Readable {
        count: 0,
        passes_gap: false,
        has_expired: false,
    };
    let (mut next, mut since) = (from.number, from.since);
    for segment in segments {
        let is_gap = segment.number > next;
        let kept = days(kept_days).as_millis() as u64;
        // What is missing may have been deleted because it had expired.
        let was_deleted = is_gap && since.saturating_add(kept) <= milliseconds(now);
        if was_deleted || segment.expires <= seconds(now) {
            // What is before it can still be read.
            readable.has_expired = readable.count == 0;
            return readable;
        }
        if is_gap {
            let settled = settled(segment);
            if milliseconds(now) <= settled {
                return readable;
            }
            readable.passes_gap = true;
        }
        readable.count += 1;
        (next, since) = (segment.number + 1, segment.reserved_at);
    }
    readable
}

/// The changes of all partitions from a cursor on, those that were recorded first first.
fn merge(mut stretches: Vec<Stretch>, cursor: &FeedCursor) -> Vec<Step> {
    let mut steps = Vec::new();
    loop {
        let heads = stretches.iter().enumerate();
        let heads =
            heads.filter_map(|(at, stretch)| Some((stretch.segments.front()?.reserved_at, at)));
        let Some((_, partition)) = heads.min() else {
            return steps;
        };
        let Some(segment) = stretches[partition].segments.pop_front() else {
            return steps;
        };
        let from = cursor.positions[partition];
        let read = match segment.number == from.number {
            true => from.offset,
            false => 0,
        };
        let count = segment.entries.len();
        for (index, entry) in segment.entries.into_iter().enumerate().skip(read) {
            let is_last = index + 1 == count;
            let position = FeedPosition {
                number: segment.number + u64::from(is_last),
                offset: if is_last { 0 } else { index + 1 },
                since: segment.reserved_at,
            };
            steps.push(Step {
                partition,
                position,
                entry,
            });
        }
    }
}

/// The segments of a partition by their numbers, both inclusive.
fn segments_between(partition: u32, from: u64, to: u64) -> Query {
    let [from, to] = [from, to].map(|number| FeedKey::Segment { partition, number }.sort());
    Query::between(FeedKey::Counter { partition }.partition(), from, to)
}
