//! Recorded changes of a shadow, newest first.

use antumbra_service::history::{ChangeQuery, ChangedDocument, Operation, RecordedChange};
use antumbra_service::paging::{Cursor, Page, open_cursor, page_limit, seal_cursor};
use antumbra_service::shadows::{ShadowId, State, Version};
use antumbra_service::store::StoreError;
use antumbra_shadow::{Document, Patch, PatchedLeaf, Timestamp};
use antumbra_wire::history::rebuild::{self, Rebuilt};
use antumbra_wire::history::{Entry, ItemDocuments, time_key};
use antumbra_wire::items::ShadowItem;
use futures_util::future;

use super::{Entries, HistoryReader, Stretch};
use crate::table::another_listing;

/// Bytes of the changed values of one change, and of all changes of a page, in a response. A Lambda response holds 6 MB.
const CHANGE_BYTES: usize = 512 * 1024;
pub(super) const PAGE_BYTES: usize = 3 * 1024 * 1024;
/// Entries that one request reads at most, whatever its path.
const ENTRIES: usize = 1000;

/// Place of an entry among all of a shadow: time, item, version.
type Place = (u64, ShadowItem, u64);

fn place(entry: &Entry) -> Place {
    (entry.key.time, entry.key.item, entry.key.version)
}

impl HistoryReader {
    /// Returns a page of the recorded changes of a shadow, newest first. With a path, pages may be short.
    pub async fn changes(
        &self,
        query: &ChangeQuery,
        limit: usize,
        cursor: Option<&Cursor>,
        now: Timestamp,
    ) -> Result<Page<RecordedChange>, StoreError> {
        page_limit(limit)?;
        let mut below = cursor.map(|cursor| open(query, cursor)).transpose()?;
        let (mut rows, mut bytes, mut read) = (Vec::new(), 0, 0);
        loop {
            let Entries { entries, is_end } = self.newest(query, below, limit, now).await?;
            read += entries.len();
            for (index, entry) in entries.iter().enumerate() {
                let mut change = self.change(&query.shadow, &entries[index..], now).await?;
                below = Some(place(entry));
                let path = query.path.as_deref();
                if path.is_none_or(|path| change.keep_path(path)) {
                    bytes += size(&change);
                    rows.push(change);
                }
                if rows.len() == limit || bytes > PAGE_BYTES {
                    let ends = is_end && index + 1 == entries.len();
                    let next = below.filter(|_| !ends).map(|below| seal(query, below));
                    return Ok(Page { rows, next });
                }
            }
            if is_end || read >= ENTRIES {
                let next = below.filter(|_| !is_end).map(|below| seal(query, below));
                return Ok(Page { rows, next });
            }
        }
    }

    /// The newest entries of all items of a shadow that are below a place: not more than a page can hold.
    async fn newest(
        &self,
        query: &ChangeQuery,
        below: Option<Place>,
        limit: usize,
        now: Timestamp,
    ) -> Result<Entries, StoreError> {
        let nanoseconds = |time: Timestamp| u64::try_from(time.nanoseconds()).unwrap_or_default();
        let from = query.from.map_or(0, nanoseconds);
        let to = query.to.map_or(u64::MAX, nanoseconds);
        let reads = self.items().iter().map(|&item| {
            let end = match below {
                // Nothing sorts between an entry's key and the same key with a smaller last version.
                Some((time, of, version)) if of == item => match version.checked_sub(1) {
                    Some(version) => format!("{}#{version:019}", time_key(time)),
                    None => time_key(time),
                },
                Some((time, of, _)) if item < of => format!("{}#:", time_key(time)),
                Some((time, ..)) => time_key(time),
                None => format!("{}#:", time_key(to)),
            };
            let stretch = Stretch {
                from: time_key(from),
                to: end,
                newest_first: true,
                limit,
                bytes: PAGE_BYTES,
            };
            async move {
                match stretch.from > stretch.to {
                    true => Ok(Entries {
                        entries: Vec::new(),
                        is_end: true,
                    }),
                    false => {
                        self.history
                            .entries(&query.shadow, item, stretch, now)
                            .await
                    }
                }
            }
        });
        let (mut entries, mut stopped): (Vec<Entry>, Option<Place>) = (Vec::new(), None);
        for found in future::try_join_all(reads).await? {
            if !found.is_end {
                stopped = stopped.max(found.entries.last().map(place));
            }
            entries.extend(found.entries);
        }
        entries.sort_unstable_by_key(|entry| std::cmp::Reverse(place(entry)));
        let count = entries.len();
        // Below the place where one item was read no further, there may be others of it.
        entries.retain(|entry| stopped.is_none_or(|stopped| place(entry) >= stopped));
        entries.truncate(limit);
        let is_end = stopped.is_none() && entries.len() == count;
        Ok(Entries { entries, is_end })
    }

    /// The change of the first entry. The others are older, of any item of the shadow.
    async fn change(
        &self,
        shadow: &ShadowId,
        entries: &[Entry],
        now: Timestamp,
    ) -> Result<RecordedChange, StoreError> {
        let diffs = self.diffs(shadow, entries, now).await?;
        self.recorded(&entries[0], &diffs)
    }

    /// The diffs of the first entry, one for each document of its item; `None` if it is not known. The other entries are
    /// older, of any item of the shadow.
    pub(super) async fn diffs(
        &self,
        shadow: &ShadowId,
        entries: &[Entry],
        now: Timestamp,
    ) -> Result<Vec<(State, Option<Patch>)>, StoreError> {
        let entry = &entries[0];
        let mut diffs = Vec::new();
        let mut before = None;
        for &state in entry.key.item.states() {
            let part = match state {
                State::Reported => &entry.reported,
                State::Desired => &entry.desired,
            };
            let diff = part.as_ref().and_then(|part| part.diff.clone());
            if diff.is_some() {
                diffs.push((state, diff));
                continue;
            }
            if before.is_none() {
                before = Some(match entry.operation {
                    Operation::Insert => Some(ItemDocuments::default()),
                    _ => self.state_before(shadow, entries, now).await?,
                });
            }
            let before = before.as_ref().and_then(Option::as_ref);
            let new = part.as_ref().and_then(|part| part.document.clone());
            let diff = before.and_then(|before| {
                let old = match state {
                    State::Reported => before.reported.clone(),
                    State::Desired => before.desired.clone(),
                };
                let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
                self.diff(&old, &new)
            });
            diffs.push((state, diff));
        }
        Ok(diffs)
    }

    /// The change of an entry with these diffs.
    pub(super) fn recorded(
        &self,
        entry: &Entry,
        diffs: &[(State, Option<Patch>)],
    ) -> Result<RecordedChange, StoreError> {
        let mut documents = Vec::new();
        for (state, diff) in diffs {
            let values = diff
                .as_ref()
                .map(|diff| diff.leaves(&self.model, CHANGE_BYTES));
            let values = values.transpose().map_err(|_| super::item::malformed())?;
            let values = values.flatten();
            // Where both documents are one item, only those that changed are shown.
            let is_changed = values.as_ref().is_none_or(|values| !values.is_empty());
            if is_changed || entry.key.item != ShadowItem::Combined {
                documents.push(ChangedDocument {
                    state: *state,
                    values,
                });
            }
        }
        Ok(RecordedChange {
            time: Timestamp::from_nanoseconds(entry.key.time.into()),
            version: Version(i64::try_from(entry.key.version).unwrap_or(i64::MAX)),
            operation: entry.operation,
            client_token: entry.client_token.clone(),
            documents,
        })
    }

    /// A diff that was too large to be stored; `None` if it is also too large for a response.
    fn diff(&self, old: &Document, new: &Document) -> Option<Patch> {
        Patch::between(old, new, &self.model, CHANGE_BYTES)
    }

    /// The values in which documents differ; `None` if they are too many for a response.
    pub(super) fn values(
        &self,
        old: &Document,
        new: &Document,
    ) -> Result<Option<Vec<PatchedLeaf>>, StoreError> {
        let Some(diff) = self.diff(old, new) else {
            return Ok(None);
        };
        let values = diff.leaves(&self.model, CHANGE_BYTES);
        values.map_err(|_| super::item::malformed())
    }

    /// The documents before the first entry.
    async fn state_before(
        &self,
        shadow: &ShadowId,
        entries: &[Entry],
        now: Timestamp,
    ) -> Result<Option<ItemDocuments>, StoreError> {
        let entry = &entries[0];
        let mut older: Vec<Entry> = Vec::new();
        for one in &entries[1..] {
            if one.key.item == entry.key.item {
                older.push(one.clone());
                // None that is older is needed.
                if one.is_snapshot() {
                    break;
                }
            }
        }
        if rebuild::reach(&older).is_none() {
            let version = entry.key.version.saturating_sub(1);
            let to = format!("{}#{version:019}", time_key(entry.key.time));
            let item = entry.key.item;
            older = self
                .history
                .back_to_documents(shadow, item, to, now)
                .await?;
        }
        let follows = older
            .first()
            .is_some_and(|before| rebuild::follows(entry, before));
        Ok(match rebuild::after(&older) {
            Rebuilt::State(state) if follows => Some(state.documents),
            _ => None,
        })
    }
}

pub(super) fn size(change: &RecordedChange) -> usize {
    let value = |value: &Option<String>| value.as_ref().map_or(0, String::len);
    let leaf = |leaf: &PatchedLeaf| leaf.pointer.len() + value(&leaf.old) + value(&leaf.new);
    let documents = change.documents.iter();
    let values = documents.flat_map(|document| document.values.iter().flatten());
    values.map(leaf).sum::<usize>() + 200
}

/// The texts that make a listing another one.
fn listing(query: &ChangeQuery) -> [String; 5] {
    let time = |time: Option<Timestamp>| time.map_or(String::new(), |time| time.to_string());
    [
        "history".to_owned(),
        query.shadow.to_string(),
        time(query.from),
        time(query.to),
        query.path.clone().unwrap_or_default(),
    ]
}

fn seal(query: &ChangeQuery, (time, item, version): Place) -> Cursor {
    let listing = listing(query);
    let mut parts: Vec<&str> = listing.iter().map(String::as_str).collect();
    let position = ShadowItem::ALL.iter().position(|one| *one == item);
    let place = [time, position.unwrap_or_default() as u64, version].map(|n| n.to_string());
    parts.extend(place.iter().map(String::as_str));
    seal_cursor(&parts)
}

fn open(query: &ChangeQuery, cursor: &Cursor) -> Result<Place, StoreError> {
    let parts = open_cursor(cursor)?;
    let place = || {
        let [time, item, version] = parts.strip_prefix(&listing(query))? else {
            return None;
        };
        let item = *ShadowItem::ALL.get(item.parse::<usize>().ok()?)?;
        Some((time.parse().ok()?, item, version.parse().ok()?))
    };
    place().ok_or_else(another_listing)
}
