//! Recorded changes of a shadow, with the documents before and after them.

use antumbra_service::history::{DocumentChange, Operation};
use antumbra_service::shadows::{ShadowId, State, Version};
use antumbra_service::store::StoreError;
use antumbra_shadow::Timestamp;
use antumbra_wire::history::{Entry, ItemDocuments, rebuild, time_key};
use antumbra_wire::items::{ItemKind, ShadowItem};

use super::{HistoryReader, Stretch};

impl HistoryReader {
    /// Calls `visit` with the changes of a shadow's documents from a time to another, both included, while it returns
    /// true: those of one item after those of another, oldest first. Reads at most the `limit` newest entries of each
    /// item, and leaves out changes whose documents are not known. Returns whether there may be more entries.
    pub async fn replay(
        &self,
        shadow: &ShadowId,
        [from, to]: [Timestamp; 2],
        limit: usize,
        now: Timestamp,
        mut visit: impl FnMut(DocumentChange) -> bool,
    ) -> Result<bool, StoreError> {
        let nanoseconds = |time: Timestamp| u64::try_from(time.nanoseconds()).unwrap_or_default();
        let (from, to) = (nanoseconds(from), nanoseconds(to));
        let mut has_more = false;
        for &item in self.items() {
            let stretch = Stretch {
                from: time_key(from),
                to: format!("{}#:", time_key(to)),
                newest_first: true,
                limit,
                bytes: usize::MAX,
            };
            let found = self.history.entries(shadow, item, stretch, now).await?;
            let mut entries = found.entries;
            has_more |= entries.len() >= limit;
            let Some(oldest) = entries.last() else {
                continue;
            };
            if oldest.operation != Operation::Insert {
                let version = oldest.key.version.saturating_sub(1);
                let before = format!("{}#{version:019}", time_key(oldest.key.time));
                let older = self.history.back_to_documents(shadow, item, before, now);
                entries.extend(older.await?);
            }
            entries.reverse();
            let mut goes_on = true;
            rebuild::replay(&entries, |entry, old, new| {
                let is_in_time = entry.key.time >= from;
                let mut changes = changes(item, entry, old, new)
                    .into_iter()
                    .filter(|_| is_in_time);
                goes_on = changes.all(&mut visit);
                goes_on
            });
            if !goes_on {
                return Ok(true);
            }
        }
        Ok(has_more)
    }
}

/// The documents of an item that an entry changed.
fn changes(
    item: ShadowItem,
    entry: &Entry,
    old: &ItemDocuments,
    new: &ItemDocuments,
) -> Vec<DocumentChange> {
    let kind = ItemKind::Shadow(item);
    let (partition, sort) = (kind.partition(&entry.key.id), kind.sort(&entry.key.name));
    let pairs = [
        (State::Reported, &old.reported, &new.reported),
        (State::Desired, &old.desired, &new.desired),
    ];
    let changed = pairs.into_iter().filter(|(_, old, new)| old != new);
    changed
        .map(|(state, old, new)| DocumentChange {
            key: format!("{partition}#{sort}"),
            state,
            time: Timestamp::from_nanoseconds(entry.key.time.into()),
            version: Version(i64::try_from(entry.key.version).unwrap_or(i64::MAX)),
            operation: entry.operation,
            client_token: entry.client_token.clone(),
            old: old.clone(),
            new: new.clone(),
        })
        .collect()
}
