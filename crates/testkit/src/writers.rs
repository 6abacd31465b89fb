//! Concurrent writers through the SDK, on a store that fails.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use antumbra_service::clock::ManualClock;
use antumbra_service::shadows::{
    Delete, DocumentSet, Read, ReadConsistency, ShadowError, ShadowId, ShadowStore, Shadows,
    Snapshot, State, StoreError, Update, Write, Written,
};
use antumbra_shadow::{Document, Timestamp};
use futures_util::future::join_all;

use crate::{Failing, Faults, forward_shadow_store};

const WRITERS: usize = 32;
const RETRIES: u32 = 8;

/// Counts successful writes, and yields after each read, so that writers interleave.
struct Interleaved<P> {
    inner: P,
    applied: AtomicI64,
}

impl<P: ShadowStore> ShadowStore for Interleaved<P> {
    forward_shadow_store!(inner: layout, delete, list, list_by_prefix);

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
}

/// Results of one writer.
#[derive(Default)]
struct WriterLog {
    /// The last report that was acknowledged.
    last: HashMap<ShadowId, usize>,
    versions: Vec<(ShadowId, i64)>,
    conflicts: Vec<u32>,
    retried: usize,
}

/// Each writer makes `reports` reports to some of `shadows` shadows, while the store throttles, loses requests
/// and loses responses. Every acknowledged report is in the document in the end, versions rise by one, no
/// version is returned twice, and a conflict is returned only after all retries.
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
        Interleaved {
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
    let logs =
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
        for (writer, log) in logs.iter().enumerate() {
            let Some(last) = log.last.get(&shadow) else {
                continue;
            };
            let value = held.document.pointer(&format!("/w{writer}/value")).unwrap();
            let kept: usize = value.as_number().unwrap().parse().unwrap();
            assert!(
                kept >= *last,
                "seed {seed}: writer {writer} got {last}, {kept} is stored"
            );
        }
    }
    for log in &logs {
        assert!(
            log.conflicts
                .iter()
                .all(|&attempts| attempts == RETRIES + 1),
            "seed {seed}: conflict returned too early"
        );
        for version in &log.versions {
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
    let retried: usize = logs.iter().map(|log| log.retried).sum();
    assert!(retried > reports, "seed {seed}: the faults were felt");
}

/// Twenty writers make fifty reports each to one shadow at the same time. None expects a version, so all succeed,
/// and every report is kept. Needs a paused runtime: writers wait for each other.
pub async fn unconditional_reports_all_succeed<P: ShadowStore>(store: P) {
    const REPORTS: usize = 50;
    let sdk = Shadows::new(Interleaved {
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

/// Deletes, or writes of a document, by shadow and state: version, whether it was deleted, time.
type Times = HashMap<(ShadowId, State), Vec<(i64, bool, Timestamp)>>;

/// Records the time of every write and delete. Clones share the store and the record.
struct Timed<P> {
    inner: Arc<Interleaved<P>>,
    times: Arc<Mutex<Times>>,
}

impl<P> Timed<P> {
    fn record(&self, shadow: &ShadowId, state: State, version: i64, deleted: bool, at: Timestamp) {
        let mut times = self.times.lock().unwrap();
        let times = times.entry((shadow.clone(), state)).or_default();
        times.push((version, deleted, at));
    }
}

impl<P: ShadowStore> ShadowStore for Timed<P> {
    forward_shadow_store!(inner: layout, read, list, list_by_prefix);

    async fn write(&self, write: &Write) -> Result<Written, StoreError> {
        let written = self.inner.write(write).await?;
        for (state, version) in [
            (State::Reported, written.reported),
            (State::Desired, written.desired),
        ] {
            if let Some(version) = version {
                self.record(&write.shadow, state, version.0, false, write.timestamp);
            }
        }
        Ok(written)
    }

    async fn delete(&self, delete: &Delete, now: Timestamp) -> Result<(), StoreError> {
        self.inner.delete(delete, now).await?;
        for (state, expected) in [
            (State::Reported, delete.reported),
            (State::Desired, delete.desired),
        ] {
            if let Some(expected) = expected {
                let version = expected.parts().0.expect("a use case deletes one version");
                self.record(&delete.shadow, state, version.0, true, now);
            }
        }
        Ok(())
    }
}

/// Writers whose clocks differ by minutes report, desire and delete the same shadows. Per document, the time of
/// every write is later than that of the one before.
pub async fn write_times_increase<P: ShadowStore>(store: P, seed: u64) {
    let store = Arc::new(Interleaved {
        inner: store,
        applied: AtomicI64::new(0),
    });
    let times = Arc::new(Mutex::new(Times::new()));
    let writers = (0..8).map(async |writer: u64| {
        let mut random = fastrand::Rng::with_seed(seed << 8 | writer);
        let start = Timestamp::from_nanoseconds(1_700_000_000_000_000_000);
        let clock = Arc::new(ManualClock::new(
            start.after(Duration::from_secs(random.u64(0..600))),
        ));
        let timed = Timed {
            inner: Arc::clone(&store),
            times: Arc::clone(&times),
        };
        let sdk = Shadows::with_clock(timed, clock.clone());
        for step in 0..40 {
            clock.advance(Duration::from_millis(random.u64(0..500)));
            let shadow = id(random.usize(0..2));
            let document = Document::parse(&format!(r#"{{"w{writer}":{step}}}"#)).unwrap();
            let done = match random.u8(0..8) {
                0 => sdk.delete_shadow(&shadow, None, None, None).await.map(drop),
                1 => sdk.delete(Delete::whole(shadow)).await,
                2 => sdk.update(Update::desire(shadow, document)).await.map(drop),
                _ => sdk.update(Update::report(shadow, document)).await.map(drop),
            };
            if let Err(error) = done {
                assert!(error.is_conflict() || error.is_not_found(), "{error}");
            }
        }
    });
    join_all(writers).await;
    let mut times = times.lock().unwrap();
    assert!(times.len() >= 4, "seed {seed}: all documents were written");
    for (document, writes) in times.iter_mut() {
        writes.sort_unstable();
        let deletes = writes.iter().filter(|(_, deleted, _)| *deleted).count();
        assert!(deletes > 0, "seed {seed}: {document:?} was never deleted");
        for pair in writes.windows(2) {
            assert!(
                pair[0].2 < pair[1].2,
                "seed {seed}: {document:?} {pair:?} do not increase"
            );
        }
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
) -> WriterLog {
    let mut random = fastrand::Rng::with_seed(seed ^ (writer as u64) << 8);
    let mut log = WriterLog::default();
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
                log.retried += usize::from(updated.attempts > 1);
                log.last.insert(shadow.clone(), report);
                if updated.written {
                    log.versions
                        .push((shadow, updated.version(State::Reported).0));
                }
            }
            Err(ShadowError::Store {
                error: StoreError::Conflict { .. },
                attempts,
            }) => {
                log.conflicts.push(attempts);
            }
            Err(ShadowError::Store { error, .. }) => assert!(error.is_retryable(), "{error}"),
            Err(error) => panic!("{error}"),
        }
    }
    log
}
