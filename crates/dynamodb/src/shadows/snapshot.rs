//! Reads of both documents of shadows as they are at one instant, in transactions.
//!
//! DynamoDB cancels a whole transaction because of one shadow that is being written, or because of the size
//! of all items. Shadows are independent, so those that did not cause the failure are read again without
//! the others.

use antumbra_service::backoff;
use antumbra_service::shadows::{DocumentSet, Layout, ShadowId};
use antumbra_service::store::StoreError;
use antumbra_wire::items::ShadowItem;
use futures_util::stream::{self, StreamExt};

use super::{DynamoDbShadows, keys};
use crate::table::{Found, Key, SnapshotError};

const TRANSACTION_ITEMS: usize = 100;

struct Group<'a> {
    shadows: Vec<&'a ShadowId>,
    /// Transactions that these shadows have made fail.
    failures: u32,
}

enum NextStep<'a> {
    Retry(Vec<Group<'a>>),
    Fail(Group<'a>, StoreError),
}

impl DynamoDbShadows {
    pub(super) async fn get_snapshots(&self, shadows: &[&ShadowId]) -> Found {
        let calls: Vec<_> = shadows
            .chunks(TRANSACTION_ITEMS / items().len())
            .map(|chunk| self.get_chunk(chunk))
            .collect();
        let found = stream::iter(calls).buffer_unordered(self.config.fan_out.get());
        found.flat_map(stream::iter).collect().await
    }

    async fn get_chunk(&self, shadows: &[&ShadowId]) -> Found {
        let mut found = Found::new();
        let mut groups = vec![Group {
            shadows: shadows.to_vec(),
            failures: 0,
        }];
        while let Some(group) = groups.pop() {
            if group.failures > 0 {
                let wait = backoff::delay(group.failures, fastrand::f64());
                tokio::time::sleep(wait).await;
            }
            let keys = group.keys();
            match self.table.get_snapshot(&keys).await {
                Ok(items) => found.extend(keys.into_iter().zip(items.into_iter().map(Ok))),
                Err(failure) => match self.next_step(group, failure) {
                    NextStep::Retry(smaller) => groups.extend(smaller),
                    NextStep::Fail(group, error) => {
                        let keys = group.keys().into_iter();
                        found.extend(keys.map(|key| (key, Err(error.clone()))));
                    }
                },
            }
        }
        found
    }

    fn next_step<'a>(&self, group: Group<'a>, failure: SnapshotError) -> NextStep<'a> {
        let SnapshotError { error, at_fault } = failure;
        if !error.is_retryable() {
            return group.halve(error);
        }
        let Some(at_fault) = at_fault else {
            return NextStep::Fail(group, error);
        };
        let mut faults = at_fault.chunks(items().len());
        let (at_fault, others): (Vec<_>, Vec<_>) = group
            .shadows
            .iter()
            .partition(|_| faults.next().is_some_and(|faults| faults.contains(&true)));
        let failures = group.failures + 1;
        if at_fault.is_empty() || (others.is_empty() && failures >= self.config.read_attempts) {
            return NextStep::Fail(group, error);
        }
        let mut groups = vec![Group {
            shadows: at_fault,
            failures,
        }];
        if !others.is_empty() {
            // Groups are taken from the end, so this one is read first.
            groups.push(Group {
                shadows: others,
                failures: 0,
            });
        }
        NextStep::Retry(groups)
    }
}

impl<'a> Group<'a> {
    fn keys(&self) -> Vec<Key> {
        let shadows = self.shadows.iter();
        let keys = shadows.flat_map(|shadow| items().iter().map(|item| keys::key(shadow, *item)));
        keys.collect()
    }

    /// Splits a group that was rejected as a whole, perhaps for its size.
    fn halve(mut self, error: StoreError) -> NextStep<'a> {
        if self.shadows.len() < 2 {
            return NextStep::Fail(self, error);
        }
        let half = Group {
            shadows: self.shadows.split_off(self.shadows.len() / 2),
            failures: 0,
        };
        NextStep::Retry(vec![self, half])
    }
}

/// Only documents in separate items need a transaction.
fn items() -> &'static [ShadowItem] {
    keys::items(Layout::Separate, DocumentSet::Both)
}
