//! Appending changes to the feed.

use std::collections::BTreeMap;

use antumbra_service::clock::Clock;
use antumbra_service::history::days;
use antumbra_service::store::StoreError;
use antumbra_shadow::Timestamp;
use antumbra_wire::history::{FeedKey, SegmentEntry, encode_segments, feed_partition};
use futures_util::future;

use super::{FeedConfig, FeedSettings, LAST, place, segment_item};
use crate::history::DynamoDbHistory;
use crate::table::{ABSENT, Outcome, Write};
use crate::value::{from_item, number, read_number};

impl DynamoDbHistory {
    /// Returns the settings of the feed; `None` if nothing was written to it.
    pub async fn feed_settings(&self) -> Result<Option<FeedSettings>, StoreError> {
        let found = self.table.get(&place(FeedKey::Settings)).await?;
        found
            .map(|found| from_item("settings item of the feed", found))
            .transpose()
    }

    /// Returns the settings of the feed, and records them if it has none. Any number of writers may start at once.
    pub async fn ensure_feed(
        &self,
        config: FeedConfig,
        now: Timestamp,
    ) -> Result<FeedSettings, StoreError> {
        loop {
            let stored = self.feed_settings().await?;
            let (settings, condition) = match &stored {
                None => (FeedSettings::new(config, now), ABSENT),
                Some(stored) if stored.days > config.days => {
                    let days = config.days;
                    let stored = stored.clone();
                    (FeedSettings { days, ..stored }, "#days > :days")
                }
                Some(stored) => {
                    if stored.partitions != config.partitions {
                        let (stored, configured) = (stored.partitions, config.partitions);
                        tracing::warn!(
                            stored,
                            configured,
                            "the feed keeps its number of partitions"
                        );
                    }
                    return Ok(stored.clone());
                }
            };
            let item = self.table.item(&place(FeedKey::Settings), &settings)?;
            let mut put = Write::put(item).condition(condition);
            if stored.is_some() {
                put = put.value(":days", number(config.days));
            }
            // Compared again, as another writer may have been faster.
            self.table.write(put).await?;
        }
    }

    /// Appends changes whose entries were written, in order per partition. After an error some of them may be in the
    /// feed.
    pub async fn append(
        &self,
        (settings, feed_days): (&FeedSettings, u32),
        changes: &[SegmentEntry],
        clock: &dyn Clock,
    ) -> Result<(), StoreError> {
        let mut partitions: BTreeMap<u32, Vec<&SegmentEntry>> = BTreeMap::new();
        for change in changes {
            let partition = feed_partition(&change.key, settings.partitions);
            partitions.entry(partition).or_default().push(change);
        }
        let appended = partitions
            .into_iter()
            .map(|(partition, changes)| self.append_to(partition, changes, feed_days, clock));
        // Not one is given up because another failed: its numbers are reserved.
        future::join_all(appended).await.into_iter().collect()
    }

    async fn append_to(
        &self,
        partition: u32,
        changes: Vec<&SegmentEntry>,
        feed_days: u32,
        clock: &dyn Clock,
    ) -> Result<(), StoreError> {
        let segments = encode_segments(changes);
        let count = segments.len() as u64;
        let counter = place(FeedKey::Counter { partition });
        let add = Write::update(counter, "ADD #last :count")
            .value(":count", number(count))
            .returning_new();
        let Outcome::Applied(counter) = self.table.write(add).await? else {
            return Err(StoreError::Unavailable("no number was reserved".to_owned()));
        };
        // Taken after the reservation: every smaller number was reserved before this time.
        let reserved_at = clock.now();
        let last: u64 = read_number(&counter, LAST)?;
        let numbers = (last + 1).saturating_sub(count)..=last;
        for (number, body) in numbers.zip(segments) {
            let key = FeedKey::Segment { partition, number };
            let expires = reserved_at.after(days(feed_days));
            let item = segment_item(&self.table, key, body, reserved_at, expires);
            self.table.write(Write::put(item)).await?;
        }
        Ok(())
    }
}
