//! An in-memory implementation of the port `Suspensions` (records of failing targets and marks of spilled keys), and
//! the contract that every implementation is tested with.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use antumbra_service::notifications::suspension::{
    SpilledKey, Suspension, SuspensionState, Suspensions,
};
use antumbra_service::store::{StoreError, Version};
use antumbra_shadow::Timestamp;
use async_trait::async_trait;
use futures_util::future::BoxFuture;

#[derive(Debug, Default)]
pub struct MemorySuspensions(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    records: HashMap<String, Suspension>,
    marks: HashMap<SpilledKey, (String, Timestamp)>,
    /// Number of calls from now on that fail.
    calls_to_fail: usize,
}

impl MemorySuspensions {
    /// Makes this number of calls fail, as if they were throttled.
    pub fn fail(&self, calls: usize) {
        self.0.lock().unwrap().calls_to_fail = calls;
    }

    pub fn records(&self) -> Vec<Suspension> {
        self.0.lock().unwrap().records.values().cloned().collect()
    }

    /// Returns the number of marked keys, including expired marks.
    pub fn marks(&self) -> usize {
        self.0.lock().unwrap().marks.len()
    }

    fn call<T: Send + 'static>(
        &self,
        change: impl FnOnce(&mut State) -> T,
    ) -> BoxFuture<'_, Result<T, StoreError>> {
        let mut state = self.0.lock().unwrap();
        let result = match state.calls_to_fail.checked_sub(1) {
            Some(left) => {
                state.calls_to_fail = left;
                Err(StoreError::Throttled)
            }
            None => Ok(change(&mut state)),
        };
        // The change is made before the first poll, the response comes after a yield: tests can drop the future in
        // between, like a crash between a call and its response.
        Box::pin(async move {
            tokio::task::yield_now().await;
            result
        })
    }
}

#[async_trait]
impl Suspensions for MemorySuspensions {
    async fn all(&self) -> Result<Vec<Suspension>, StoreError> {
        self.call(|state| state.records.values().cloned().collect())
            .await
    }

    async fn save(&self, record: &Suspension) -> Result<bool, StoreError> {
        self.call(|state| {
            let stored = state.records.get(&record.registration);
            let applies = stored.map_or(Version::NONE, |stored| stored.version) == record.version;
            if applies {
                let mut record = record.clone();
                record.version = record.version.next();
                state.records.insert(record.registration.clone(), record);
            }
            applies
        })
        .await
    }

    async fn remove(&self, record: &Suspension) -> Result<bool, StoreError> {
        self.call(|state| {
            let stored = state.records.get(&record.registration);
            let applies = stored.is_some_and(|stored| stored.version == record.version);
            if applies {
                state.records.remove(&record.registration);
            }
            applies
        })
        .await
    }

    async fn touch(&self, registration: &str) -> Result<bool, StoreError> {
        self.call(|state| match state.records.get_mut(registration) {
            Some(record) => {
                record.version = record.version.next();
                true
            }
            None => false,
        })
        .await
    }

    async fn mark(
        &self,
        keys: &[(SpilledKey, String)],
        until: Timestamp,
    ) -> Result<(), StoreError> {
        self.call(|state| {
            for (key, id) in keys {
                state.marks.insert(key.clone(), (id.clone(), until));
            }
        })
        .await
    }

    async fn marked(&self, keys: &[SpilledKey], now: Timestamp) -> Result<Vec<bool>, StoreError> {
        self.call(|state| {
            let marked = |key| state.marks.get(key).is_some_and(|(_, until)| *until > now);
            keys.iter().map(marked).collect()
        })
        .await
    }

    async fn clear(&self, key: &SpilledKey, id: &str) -> Result<(), StoreError> {
        self.call(|state| {
            if state.marks.get(key).is_some_and(|(last, _)| last == id) {
                state.marks.remove(key);
            }
        })
        .await
    }

    async fn is_drained(&self, registration: &str, now: Timestamp) -> Result<bool, StoreError> {
        self.call(|state| {
            let mut marks = state.marks.iter();
            !marks.any(|(key, (_, until))| key.registration == registration && *until > now)
        })
        .await
    }
}

/// Checks the laws of [`Suspensions`] on an empty store.
pub async fn contract(store: &dyn Suspensions) {
    let now = Timestamp::parse("2026-01-31T12:00:00Z").unwrap();
    let later = now.after(Duration::from_secs(60));

    // Records: a save or remove applies only to the stored version, and every change raises it.
    assert_eq!(store.all().await.unwrap(), []);
    let failing = Suspension::after_failure(None, "lights", now);
    assert!(store.save(&failing).await.unwrap());
    assert!(!store.save(&failing).await.unwrap(), "the record exists");
    assert!(!store.touch("others").await.unwrap());
    let stored = store.all().await.unwrap().remove(0);
    assert_eq!((stored.failures, stored.failed_at), (1, now));
    let mut suspended = stored.clone();
    suspended.state = SuspensionState::Suspended;
    assert!(store.save(&suspended).await.unwrap());
    assert!(!store.remove(&stored).await.unwrap(), "another version");
    let stored = store.all().await.unwrap().remove(0);
    assert_eq!(stored.state, SuspensionState::Suspended);
    assert!(store.touch("lights").await.unwrap());
    assert!(!store.remove(&stored).await.unwrap(), "it was touched");

    // Marks of spilled keys. 120 are more than one DynamoDB batch can write or read.
    let key = |registration: &str, key: &str| SpilledKey {
        registration: registration.to_owned(),
        key: key.to_owned(),
    };
    let (a, b, other) = (key("lights", "a"), key("lights", "b"), key("doors", "a"));
    let many: Vec<_> = (0..120).map(|n| key("many", &n.to_string())).collect();
    let marks = many.iter().map(|key| (key.clone(), "m".to_owned()));
    let marks: Vec<_> = marks.collect();
    store.mark(&marks, later).await.unwrap();
    assert_eq!(store.marked(&many, now).await.unwrap(), [true; 120]);
    assert!(store.is_drained("lights", now).await.unwrap());

    // A key that is marked twice names its last message, and only that message clears it.
    store
        .mark(&[(a.clone(), "m1".to_owned())], later)
        .await
        .unwrap();
    store
        .mark(&[(a.clone(), "m2".to_owned())], later)
        .await
        .unwrap();
    let keys = [a.clone(), b, other];
    assert_eq!(
        store.marked(&keys, now).await.unwrap(),
        [true, false, false]
    );
    assert_eq!(
        store.marked(&keys, later).await.unwrap(),
        [false; 3],
        "expired"
    );
    store.clear(&a, "m1").await.unwrap();
    assert!(!store.is_drained("lights", now).await.unwrap());
    assert!(store.is_drained("lights", later).await.unwrap(), "expired");
    store.clear(&a, "m2").await.unwrap();
    assert!(store.is_drained("lights", now).await.unwrap());

    let stored = store.all().await.unwrap().remove(0);
    assert!(store.remove(&stored).await.unwrap());
    assert_eq!(store.all().await.unwrap(), []);
}
