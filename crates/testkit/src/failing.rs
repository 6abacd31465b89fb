//! A shadow store that fails, by a seed.

use std::sync::{Mutex, PoisonError};

use antumbra_service::access::IdRanges;
use antumbra_service::shadows::{
    Cursor, Delete, DocumentSummary, Layout, Page, Read, ReadConsistency, ShadowId, ShadowStore,
    Snapshot, StoreError, Write, Written,
};
use antumbra_shadow::Timestamp;

/// Probability of each fault. Their sum is at most 1.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Faults {
    /// `Throttled`, without effect.
    pub throttled: f64,
    /// `Unavailable`, without effect.
    pub lost_before: f64,
    /// `Unavailable`, although the operation took effect.
    pub lost_after: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Done,
    Throttled,
    LostBefore,
    LostAfter,
}

/// Forwards operations or fails them, each on its own, as the seed decides.
#[derive(Debug)]
pub struct Failing<P> {
    inner: P,
    faults: Faults,
    random: Mutex<fastrand::Rng>,
}

impl<P> Failing<P> {
    /// The same seed and calls lead to the same failures.
    pub fn new(inner: P, faults: Faults, seed: u64) -> Failing<P> {
        Failing {
            inner,
            faults,
            random: Mutex::new(fastrand::Rng::with_seed(seed)),
        }
    }

    /// Returns the store that does not fail.
    pub fn inner(&self) -> &P {
        &self.inner
    }

    fn fate(&self) -> Fate {
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        let Faults {
            throttled,
            lost_before,
            lost_after,
        } = self.faults;
        match random.f64() {
            r if r < throttled => Fate::Throttled,
            r if r < throttled + lost_before => Fate::LostBefore,
            r if r < throttled + lost_before + lost_after => Fate::LostAfter,
            _ => Fate::Done,
        }
    }
}

/// Carries out a call, or fails it, as its fate says.
async fn call<T>(
    fate: Fate,
    operation: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let lost = |when: &str| Err(StoreError::Unavailable(format!("lost {when}")));
    match fate {
        Fate::Done => operation.await,
        Fate::Throttled => Err(StoreError::Throttled),
        Fate::LostBefore => lost("before"),
        Fate::LostAfter => {
            let _ = operation.await;
            lost("after")
        }
    }
}

impl<P: ShadowStore> ShadowStore for Failing<P> {
    fn layout(&self) -> Layout {
        self.inner.layout()
    }

    async fn read(
        &self,
        read: &Read,
        consistency: ReadConsistency,
    ) -> Result<Snapshot, StoreError> {
        call(self.fate(), self.inner.read(read, consistency)).await
    }

    async fn write(&self, write: &Write) -> Result<Written, StoreError> {
        call(self.fate(), self.inner.write(write)).await
    }

    async fn delete(&self, delete: &Delete, now: Timestamp) -> Result<(), StoreError> {
        call(self.fate(), self.inner.delete(delete, now)).await
    }

    async fn list(
        &self,
        id: &str,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<DocumentSummary>, StoreError> {
        call(self.fate(), self.inner.list(id, limit, cursor)).await
    }

    async fn list_by_prefix(
        &self,
        prefix: &str,
        within: &IdRanges,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<ShadowId>, StoreError> {
        call(
            self.fate(),
            self.inner.list_by_prefix(prefix, within, limit, cursor),
        )
        .await
    }
}
