//! Updates on a store whose eventually consistent reads always miss the last write.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use antumbra_memory::MemoryShadows;
use antumbra_service::clock::ManualClock;
use antumbra_service::shadows::{
    Delete, DesiredMode, DocumentSet, Layout, Read, ReadConsistency, ShadowId, ShadowStore,
    Shadows, Snapshot, State, StoreError, Update, Version, Write, Written,
};
use antumbra_shadow::{Document, Mode, Timestamp};
use antumbra_testkit::forward_shadow_store;

/// A store with a replica that lags behind by one write.
#[derive(Clone)]
struct Lagging {
    inner: MemoryShadows,
    before: Arc<Mutex<Snapshot>>,
    /// Consistency of each read, and writes.
    calls: Arc<Mutex<Vec<&'static str>>>,
}

impl Lagging {
    fn new(layout: Layout) -> Lagging {
        Lagging {
            inner: MemoryShadows::new(layout),
            before: Arc::default(),
            calls: Arc::default(),
        }
    }

    fn take_calls(&self) -> Vec<&'static str> {
        std::mem::take(&mut *self.calls.lock().unwrap())
    }

    async fn remember(&self, shadow: &ShadowId) {
        let read = Read {
            shadow: shadow.clone(),
            parts: DocumentSet::Both,
        };
        let now = self.inner.read(&read, ReadConsistency::Strong).await;
        *self.before.lock().unwrap() = now.unwrap_or_default();
    }
}

impl ShadowStore for Lagging {
    forward_shadow_store!(inner: layout, list, list_by_prefix);

    async fn read(
        &self,
        read: &Read,
        consistency: ReadConsistency,
    ) -> Result<Snapshot, StoreError> {
        let is_eventual = consistency == ReadConsistency::Eventual;
        let call = if is_eventual { "eventual" } else { "strong" };
        self.calls.lock().unwrap().push(call);
        if !is_eventual {
            return self.inner.read(read, consistency).await;
        }
        let mut before = self.before.lock().unwrap().clone();
        before.reported = before.reported.filter(|_| read.parts.has(State::Reported));
        before.desired = before.desired.filter(|_| read.parts.has(State::Desired));
        match before.is_absent() {
            true => Err(StoreError::NotFound),
            false => Ok(before),
        }
    }

    async fn write(&self, write: &Write) -> Result<Written, StoreError> {
        self.calls.lock().unwrap().push("write");
        self.remember(&write.shadow).await;
        self.inner.write(write).await
    }

    async fn delete(&self, delete: &Delete, now: Timestamp) -> Result<(), StoreError> {
        self.remember(&delete.shadow).await;
        self.inner.delete(delete, now).await
    }
}

fn lamp() -> ShadowId {
    ShadowId::new("lamp").unwrap()
}

/// A report over MQTT at this second, that acknowledges nothing: only the reported document is needed.
fn report(text: &str, seconds: i128) -> Update {
    let document = Document::parse(text).unwrap();
    Update::report(lamp(), document)
        .mode(Mode::Patch)
        .desired_mode(DesiredMode::IgnoreDesiredState)
        .time(Timestamp::from_nanoseconds(seconds * 1_000_000_000))
}

fn lagging(layout: Layout) -> (Lagging, Shadows<Lagging>, Arc<ManualClock>) {
    let store = Lagging::new(layout);
    let clock = Arc::new(ManualClock::new(Timestamp::from_nanoseconds(1_000_000_000)));
    let shadows = Shadows::with_clock(store.clone(), clock.clone());
    (store, shadows, clock)
}

const LAYOUTS: [Layout; 2] = [Layout::Separate, Layout::Combined];

#[tokio::test]
async fn what_a_stale_read_shows_decides_nothing() {
    for layout in LAYOUTS {
        let (store, shadows, _) = lagging(layout);
        // Each report equals the state that the replica shows: A, B, A, B.
        for (number, led) in ["on", "off", "on", "off"].into_iter().enumerate() {
            let text = format!(r#"{{"led":"{led}"}}"#);
            let updated = shadows.update(report(&text, number as i128 + 1));
            let updated = updated.await.unwrap();
            assert!(updated.written, "{layout:?} {number}");
            let read = shadows.read(&lamp(), DocumentSet::Reported).await.unwrap();
            let reported = read.reported.unwrap();
            assert_eq!(reported.document.as_str(), text);
            assert_eq!(reported.version, Version(number as i64 + 1));
        }
        store.take_calls();
        let repeated = shadows.update(report(r#"{"led":"off"}"#, 5)).await.unwrap();
        assert!(!repeated.written);
        // Based on the stale read the value would be written: the condition refuses it. Then only its time is.
        let calls = ["eventual", "write", "strong", "write"];
        assert_eq!(store.take_calls(), calls);
        let late = shadows.update(report(r#"{"led":"on"}"#, 3)).await.unwrap();
        assert!(!late.written);
    }
}

#[tokio::test]
async fn an_expected_version_is_compared_with_a_consistent_read() {
    for layout in LAYOUTS {
        let (store, shadows, _) = lagging(layout);
        shadows.update(report(r#"{"led":1}"#, 1)).await.unwrap();
        shadows.update(report(r#"{"led":2}"#, 2)).await.unwrap();
        store.take_calls();
        let expecting = report(r#"{"led":3}"#, 3).expected(Version(2));
        shadows.update(expecting).await.unwrap();
        // Neither may a writer without retries fail because of a stale read.
        let once = report(r#"{"led":4}"#, 4).retries(0);
        shadows.update(once).await.unwrap();
        assert_eq!(store.take_calls(), ["strong", "write", "strong", "write"]);
    }
}

#[tokio::test]
async fn a_report_from_before_a_delete_does_not_bring_the_document_back() {
    for layout in LAYOUTS {
        let (_, shadows, clock) = lagging(layout);
        shadows.update(report(r#"{"led":1}"#, 1)).await.unwrap();
        clock.advance(Duration::from_secs(2));
        shadows
            .delete_shadow(&lamp(), None, None, None)
            .await
            .unwrap();
        let late = report(r#"{"led":2}"#, 2);
        assert!(!shadows.update(late).await.unwrap().written, "{layout:?}");
        let read = shadows.read(&lamp(), DocumentSet::Both).await;
        assert!(read.unwrap_err().is_not_found());
    }
}

/// A document that is created alone continues the version of the whole shadow, which was deleted.
#[tokio::test]
async fn the_version_continues_after_a_delete_whatever_is_read() {
    for layout in LAYOUTS {
        for create in [
            report(r#"{"led":9}"#, 99),
            Update::desire(lamp(), Document::parse(r#"{"led":9}"#).unwrap()),
        ] {
            let (_, shadows, clock) = lagging(layout);
            clock.advance(Duration::from_secs(10));
            for n in 0..3 {
                let text = format!(r#"{{"led":{n}}}"#);
                shadows.update(report(&text, n + 1)).await.unwrap();
                let desired = Document::parse(&format!(r#"{{"fan":{n}}}"#)).unwrap();
                shadows
                    .update(Update::desire(lamp(), desired))
                    .await
                    .unwrap();
            }
            let version = shadows
                .read(&lamp(), DocumentSet::Both)
                .await
                .unwrap()
                .version;
            assert_eq!(version, Version(6));
            shadows
                .delete_shadow(&lamp(), None, None, None)
                .await
                .unwrap();
            shadows.update(create.clone()).await.unwrap();
            let after = shadows
                .read(&lamp(), DocumentSet::Both)
                .await
                .unwrap()
                .version;
            assert_eq!(after, Version(7), "{layout:?}");
            // The same in a batch.
            shadows
                .delete_shadow(&lamp(), None, None, None)
                .await
                .unwrap();
            let results = shadows.update_many(&[create]).await;
            assert!(results[0].is_ok());
            let after = shadows
                .read(&lamp(), DocumentSet::Both)
                .await
                .unwrap()
                .version;
            assert!(after > Version(7), "{layout:?} {after:?}");
        }
    }
}
