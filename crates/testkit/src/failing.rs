//! A persistence that fails as stores do, by a seed.

use std::sync::{Mutex, PoisonError};

use antumbra_service::shadows::{
    Cursor, Delete, DocumentSummary, Layout, ListQuery, Page, Read, ReadConsistency, ShadowStore,
    Snapshot, StoreError, Write, Written,
};
use antumbra_shadow::Timestamp;

/// How often each fault happens, each from 0 to 1. Their sum is at most 1.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Faults {
    /// `Throttled`, and nothing was done.
    pub throttled: f64,
    /// `Unavailable`, and nothing was done.
    pub lost_before: f64,
    /// `Unavailable`, although it was done. For reads the same as before.
    pub lost_after: f64,
}

/// What becomes of one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Done,
    Throttled,
    LostBefore,
    LostAfter,
}

/// Passes operations on, or lets them fail, each on its own, in the way the seed says.
#[derive(Debug)]
pub struct Failing<P> {
    inner: P,
    faults: Faults,
    random: Mutex<fastrand::Rng>,
}

impl<P> Failing<P> {
    /// The same seed and the same calls in the same order give the same failures.
    pub fn new(inner: P, faults: Faults, seed: u64) -> Failing<P> {
        Failing {
            inner,
            faults,
            random: Mutex::new(fastrand::Rng::with_seed(seed)),
        }
    }

    /// What it stands before, which does not fail.
    pub fn inner(&self) -> &P {
        &self.inner
    }

    fn fates(&self, count: usize) -> Vec<Fate> {
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        (0..count).map(|_| self.fate(random.f64())).collect()
    }

    fn fate(&self, random: f64) -> Fate {
        let Faults {
            throttled,
            lost_before,
            lost_after,
        } = self.faults;
        match random {
            r if r < throttled => Fate::Throttled,
            r if r < throttled + lost_before => Fate::LostBefore,
            r if r < throttled + lost_before + lost_after => Fate::LostAfter,
            _ => Fate::Done,
        }
    }
}

/// The operations that reach the store.
fn passed<T: Clone>(operations: &[T], fates: &[Fate]) -> Vec<T> {
    let reaches = |fate: Fate| matches!(fate, Fate::Done | Fate::LostAfter);
    let operations = operations.iter().zip(fates);
    operations
        .filter(|(_, fate)| reaches(**fate))
        .map(|(operation, _)| operation.clone())
        .collect()
}

/// What the caller is told.
fn told<T>(fates: &[Fate], answers: Vec<Result<T, StoreError>>) -> Vec<Result<T, StoreError>> {
    let mut answers = answers.into_iter();
    let lost = |when: &str| Err(StoreError::Unavailable(format!("lost {when}")));
    fates
        .iter()
        .map(|fate| match fate {
            Fate::Done => answers.next().unwrap_or_else(|| lost("the answer")),
            Fate::Throttled => Err(StoreError::Throttled),
            Fate::LostBefore => lost("before"),
            Fate::LostAfter => {
                answers.next();
                lost("after")
            }
        })
        .collect()
}

impl<P: ShadowStore> ShadowStore for Failing<P> {
    fn layout(&self) -> Layout {
        self.inner.layout()
    }

    async fn read(
        &self,
        reads: &[Read],
        consistency: ReadConsistency,
    ) -> Vec<Result<Snapshot, StoreError>> {
        let fates = self.fates(reads.len());
        let reads = passed(reads, &fates);
        told(&fates, self.inner.read(&reads, consistency).await)
    }

    async fn write(&self, writes: &[Write]) -> Vec<Result<Written, StoreError>> {
        let fates = self.fates(writes.len());
        let writes = passed(writes, &fates);
        told(&fates, self.inner.write(&writes).await)
    }

    async fn delete(&self, deletes: &[Delete], now: Timestamp) -> Vec<Result<(), StoreError>> {
        let fates = self.fates(deletes.len());
        let deletes = passed(deletes, &fates);
        told(&fates, self.inner.delete(&deletes, now).await)
    }

    async fn list(
        &self,
        query: &ListQuery,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<DocumentSummary>, StoreError> {
        let fates = self.fates(1);
        let listed = match fates[..] {
            [Fate::Done | Fate::LostAfter] => vec![self.inner.list(query, limit, cursor).await],
            _ => Vec::new(),
        };
        let mut told = told(&fates, listed);
        told.remove(0)
    }
}
