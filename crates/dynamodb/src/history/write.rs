//! Writing entries: the changes of one item in order, different items side by side.

use std::collections::{BTreeMap, VecDeque};

use antumbra_service::clock::{Clock, time_left};
use antumbra_service::history::days;
use antumbra_service::store::StoreError;
use antumbra_shadow::Timestamp;
use antumbra_wire::history::Entry;
use futures_util::stream::{self, StreamExt};

use super::{DynamoDbHistory, item};
use crate::table::Write;

/// Entries of one call: DynamoDB takes no more.
const CALL_ENTRIES: usize = 25;
/// Calls that run at the same time.
const CALLS_AT_ONCE: usize = 8;

/// Result of writing the entries of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WrittenEntries {
    /// For each entry whether it was written.
    pub written: Vec<bool>,
    /// One of the failures.
    pub failure: Option<StoreError>,
}

impl DynamoDbHistory {
    /// Writes entries until the deadline. After the first entry of an item that fails, no later one of that item is
    /// written. Writing an entry again changes nothing.
    pub async fn write(
        &self,
        entries: &[Entry],
        deadline: Timestamp,
        clock: &dyn Clock,
    ) -> WrittenEntries {
        let mut result = WrittenEntries {
            written: vec![false; entries.len()],
            failure: None,
        };
        let mut of_items: BTreeMap<_, VecDeque<usize>> = BTreeMap::new();
        for (index, entry) in entries.iter().enumerate() {
            let item = (&entry.key.id, &entry.key.name, entry.key.item);
            of_items.entry(item).or_default().push_back(index);
        }
        let mut waiting: Vec<VecDeque<usize>> = of_items.into_values().collect();
        while !waiting.is_empty() {
            let left = time_left(clock.now(), deadline);
            let next = waiting.iter().filter_map(|item| item.front().copied());
            let next: Vec<usize> = next.collect();
            let calls = next
                .chunks(CALL_ENTRIES)
                .map(|chunk| self.write_some(entries, chunk));
            let calls = stream::iter(calls.collect::<Vec<_>>()).buffered(CALLS_AT_ONCE);
            let results = match tokio::time::timeout(left, calls.concat()).await {
                Ok(results) => results,
                Err(_) => {
                    let late = StoreError::Unavailable("timed out".to_owned());
                    result.failure.get_or_insert(late);
                    return result;
                }
            };
            let mut results = results.into_iter();
            waiting.retain_mut(|item| match (item.pop_front(), results.next()) {
                (Some(index), Some(Ok(()))) => {
                    result.written[index] = true;
                    !item.is_empty()
                }
                (_, failed) => {
                    let failed = failed.and_then(Result::err);
                    result.failure = result.failure.take().or(failed);
                    false
                }
            });
        }
        result
    }

    /// Writes one entry each of different items.
    async fn write_some(
        &self,
        entries: &[Entry],
        indices: &[usize],
    ) -> Vec<Result<(), StoreError>> {
        let kept = days(self.days);
        let encoded = indices
            .iter()
            .map(|&index| item::encode(&self.table, &entries[index], kept));
        let (mut parts, mut writes, mut failed) = (Vec::new(), Vec::new(), Vec::new());
        for (position, items) in encoded.enumerate() {
            parts.extend(
                items
                    .parts
                    .into_iter()
                    .map(|part| (position, Write::put(part))),
            );
            writes.push(Some(Write::put(items.entry).bytes(items.bytes)));
            failed.push(None);
        }
        // A reader finds all parts of an entry that it finds.
        let (positions, parts): (Vec<usize>, Vec<Write>) = parts.into_iter().unzip();
        let results = self.table.write_many(parts).await;
        for (position, result) in positions.into_iter().zip(results) {
            if let Err(error) = result {
                writes[position] = None;
                failed[position] = Some(error);
            }
        }
        let mut results = self
            .table
            .write_many(writes.into_iter().flatten().collect())
            .await
            .into_iter();
        let result = |failed: Option<StoreError>| match failed {
            Some(error) => Err(error),
            None => results.next().unwrap_or(Ok(())),
        };
        failed.into_iter().map(result).collect()
    }
}
