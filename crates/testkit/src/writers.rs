//! Many writers through the SDK at once, on a store that fails: what must be true in the end.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use antumbra_service::clock::ManualClock;
use antumbra_service::shadows::{
    Cursor, Delete, DocumentSet, DocumentSummary, Layout, ListQuery, Page, Read, ReadConsistency,
    ShadowError, ShadowId, ShadowStore, Shadows, Snapshot, State, StoreError, Update, Write,
    Written,
};
use antumbra_shadow::{Document, Timestamp};
use futures_util::future::join_all;

use crate::{Failing, Faults};

/// How many write at once.
const WRITERS: usize = 32;
const RETRIES: u32 = 8;

/// Counts the writes that took place, and lets others run between two calls, so that they meet.
struct Busy<P> {
    inner: P,
    applied: AtomicI64,
}

impl<P: ShadowStore> ShadowStore for Busy<P> {
    fn layout(&self) -> Layout {
        self.inner.layout()
    }

    async fn read(
        &self,
        read: &Read,
        consistency: ReadConsistency,
    ) -> Result<Snapshot, StoreError> {
        let found = self.inner.read(read, consistency).await;
        tokio::task::yield_now().await;
        found
    }

    async fn write(&self, write: &Write) -> Result<Written, StoreError> {
        let written = self.inner.write(write).await;
        self.applied
            .fetch_add(i64::from(written.is_ok()), Ordering::Relaxed);
        written
    }

    async fn delete(&self, delete: &Delete, now: Timestamp) -> Result<(), StoreError> {
        self.inner.delete(delete, now).await
    }

    async fn list(
        &self,
        query: &ListQuery,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<DocumentSummary>, StoreError> {
        self.inner.list(query, limit, cursor).await
    }
}

/// What one writer was told.
#[derive(Default)]
struct Told {
    /// The last report that was acknowledged.
    last: HashMap<ShadowId, usize>,
    versions: Vec<(ShadowId, i64)>,
    conflicts: Vec<u32>,
    tried_again: usize,
}

/// Writers make `reports` reports each to `shadows` many shadows at once, while the store throttles, loses requests and loses
/// answers. Every acknowledged report is in the end in the document, versions rise by one, no two
/// writers are told the same version, and nobody is told of a conflict before all tries are used up.
pub async fn all_acknowledged_reports_are_kept<P: ShadowStore>(
    store: P,
    shadows: usize,
    reports: usize,
    seed: u64,
) {
    let faults = Faults {
        throttled: 0.1,
        lost_before: 0.05,
        lost_after: 0.1,
    };
    let store = Failing::new(
        Busy {
            inner: store,
            applied: AtomicI64::new(0),
        },
        faults,
        seed,
    );
    let clock = Arc::new(ManualClock::new(
        Timestamp::parse("2026-01-01T00:00:00Z").unwrap(),
    ));
    let sdk = Shadows::with_clock(store, clock);
    let told =
        join_all((0..WRITERS).map(|writer| write(&sdk, writer, shadows, reports, seed))).await;

    let mut versions = HashSet::new();
    let mut sum = 0;
    for number in 0..shadows {
        let shadow = id(number);
        let store = sdk.store().inner();
        let read = Read {
            shadow: shadow.clone(),
            parts: DocumentSet::Reported,
        };
        let found = store.read(&read, ReadConsistency::Strong).await;
        // With few reports, a shadow may have got none.
        let Ok(Snapshot {
            reported: Some(held),
            ..
        }) = found
        else {
            continue;
        };
        sum += held.version.0;
        for (writer, told) in told.iter().enumerate() {
            let Some(last) = told.last.get(&shadow) else {
                continue;
            };
            let value = held.document.pointer(&format!("/w{writer}/value")).unwrap();
            let kept: usize = value.as_number().unwrap().parse().unwrap();
            assert!(
                kept >= *last,
                "seed {seed}: writer {writer} was told {last}, {kept} is kept"
            );
        }
    }
    for told in &told {
        assert!(
            told.conflicts
                .iter()
                .all(|&attempts| attempts == RETRIES + 1),
            "seed {seed}: told too early"
        );
        for version in &told.versions {
            assert!(
                versions.insert(version.clone()),
                "seed {seed}: {version:?} twice"
            );
        }
    }
    assert_eq!(
        sum,
        sdk.store().inner().applied.load(Ordering::Relaxed),
        "seed {seed}: versions rise by one"
    );
    let tried_again: usize = told.iter().map(|told| told.tried_again).sum();
    assert!(tried_again > reports, "seed {seed}: the faults were felt");
}

/// Twenty writers make fifty reports each to one shadow at the same time. None expects a version, so all succeed,
/// and every report is kept. Needs a paused runtime: writers wait for each other.
pub async fn unconditional_reports_all_succeed<P: ShadowStore>(store: P) {
    const REPORTS: usize = 50;
    let sdk = Shadows::new(Busy {
        inner: store,
        applied: AtomicI64::new(0),
    });
    let shadow = id(0);
    let writers = (0..20).map(async |writer| {
        for report in 1..=REPORTS {
            let text = format!(r#"{{"w{writer}":{report}}}"#);
            let update = Update::report(shadow.clone(), Document::parse(&text).unwrap());
            sdk.update(update).await.unwrap();
        }
    });
    join_all(writers).await;
    let read = sdk.read(&shadow, DocumentSet::Reported).await.unwrap();
    let reported = read.reported.unwrap();
    assert_eq!(reported.version.0, 20 * REPORTS as i64);
    for writer in 0..20 {
        let value = reported.document.pointer(&format!("/w{writer}")).unwrap();
        assert_eq!(value.raw(), REPORTS.to_string());
    }
}

fn id(number: usize) -> ShadowId {
    ShadowId::new(format!("lamp-{number}")).unwrap()
}

async fn write<P: ShadowStore>(
    sdk: &Shadows<P>,
    writer: usize,
    shadows: usize,
    reports: usize,
    seed: u64,
) -> Told {
    let mut random = fastrand::Rng::with_seed(seed ^ (writer as u64) << 8);
    let mut told = Told::default();
    for report in 1..=reports {
        let shadow = id(random.usize(0..shadows));
        let text = format!(
            r#"{{"w{writer}":{{"timestamp":{},"value":{report}}}}}"#,
            1_700_000_000 + report
        );
        let update =
            Update::report(shadow.clone(), Document::parse(&text).unwrap()).retries(RETRIES);
        match sdk.update(update).await {
            Ok(updated) => {
                told.tried_again += usize::from(updated.attempts > 1);
                told.last.insert(shadow.clone(), report);
                if updated.written {
                    told.versions
                        .push((shadow, updated.version(State::Reported).0));
                }
            }
            Err(ShadowError::Store {
                error: StoreError::Conflict { .. },
                attempts,
            }) => {
                told.conflicts.push(attempts);
            }
            Err(ShadowError::Store { error, .. }) => assert!(error.is_retryable(), "{error}"),
            Err(error) => panic!("{error}"),
        }
    }
    told
}
