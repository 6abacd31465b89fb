//! All changes of a stretch of time in as few calls as possible, for histograms and charts.

use antumbra_service::history::{Operation, Scan, StoredChange, StoredDiff};
use antumbra_service::shadows::{ShadowId, State};
use antumbra_service::store::StoreError;
use antumbra_shadow::{Patch, Timestamp};
use antumbra_wire::history::{Entry, document_prefix, history_partition, time_key};
use antumbra_wire::items::ShadowItem;
use futures_util::future;

use super::{HistoryReader, item};
use crate::table::{Item, Key, Query};

/// Calls for the entries of one item at most. Each returns up to 1 MB.
const CALLS: usize = 16;

impl HistoryReader {
    /// Maps the changes of a shadow from a time to another, both included. One query for each item of the shadow, in
    /// pages as large as DynamoDB returns them; each reads at most the `limit` newest entries and 16 MB.
    ///
    /// Reads are eventually consistent, which costs half. The documents of entries in several parts are left out.
    pub async fn scan<T>(
        &self,
        shadow: &ShadowId,
        times: [Timestamp; 2],
        limit: usize,
        now: Timestamp,
        map: impl Fn(StoredChange) -> T,
    ) -> Result<Scan<T>, StoreError> {
        let items = self.items().iter();
        let scans = items.map(|item| self.scan_item(shadow, *item, times, limit, now, &map));
        let mut all = Scan {
            rows: Vec::new(),
            stopped: None,
        };
        for scan in future::try_join_all(scans).await? {
            all.rows.extend(scan.rows);
            all.stopped = all.stopped.max(scan.stopped);
        }
        if let Some(stopped) = all.stopped {
            all.rows.retain(|(time, _)| *time >= stopped);
        }
        all.rows.sort_by_key(|(time, _)| std::cmp::Reverse(*time));
        Ok(all)
    }

    async fn scan_item<T>(
        &self,
        shadow: &ShadowId,
        item: ShadowItem,
        times: [Timestamp; 2],
        limit: usize,
        now: Timestamp,
        map: &impl Fn(StoredChange) -> T,
    ) -> Result<Scan<T>, StoreError> {
        let [from, to] = times.map(|time| u64::try_from(time.nanoseconds()).unwrap_or_default());
        let prefix = document_prefix(item, shadow.name());
        let partition = history_partition(shadow.id());
        let from = format!("{prefix}{}", time_key(from));
        let to = format!("{prefix}{}#:", time_key(to));
        let mut query = Query::between(partition, from, to)
            .descending(true)
            .limit(limit);
        let table = &self.history.table;
        let mut rows = Vec::new();
        let mut decode = |found: Vec<Item>| -> Result<(), StoreError> {
            for found in found {
                if item::has_expired(&found, now) {
                    continue;
                }
                let Key { partition, sort } = table.key(&found).ok_or_else(item::malformed)?;
                let change = stored(item::decode_alone(&partition, &sort, found)?);
                rows.push((change.time, map(change)));
            }
            Ok(())
        };
        let mut found = table.query(query.clone()).await?;
        let mut read = found.items.len();
        for call in 1.. {
            query.start = found.last.take();
            if query.start.is_none() || read >= limit || call == CALLS {
                decode(found.items)?;
                break;
            }
            query.limit = Some(limit - read);
            // The next page is on its way while this one is decoded.
            let next = table.query(query.clone());
            let (next, decoded) = future::join(next, async { decode(found.items) }).await;
            decoded?;
            found = next?;
            read += found.items.len();
        }
        let oldest = rows.last().map(|(time, _)| *time);
        Ok(Scan {
            rows,
            stopped: query.start.and(oldest),
        })
    }
}

fn stored(entry: Entry) -> StoredChange {
    let is_deleted = entry.operation == Operation::Remove;
    let item = entry.key.item;
    let (mut reported, mut desired) = (entry.reported, entry.desired);
    let mut documents = Vec::new();
    for &state in item.states() {
        let part = match state {
            State::Reported => reported.take(),
            State::Desired => desired.take(),
        };
        let (diff, document) = part.map_or((None, None), |part| (part.diff, part.document));
        // Where both documents are one item, one of them may be as before.
        let is_same = diff.as_ref().is_some_and(Patch::is_empty);
        let is_absent = diff.is_none() && document.is_none() && !is_deleted;
        if item != ShadowItem::Combined || !is_same && !is_absent {
            documents.push(StoredDiff {
                state,
                diff,
                document,
            });
        }
    }
    StoredChange {
        time: Timestamp::from_nanoseconds(entry.key.time.into()),
        documents,
    }
}
