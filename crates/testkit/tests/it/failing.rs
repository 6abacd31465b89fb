//! Faults of the failing store.

use antumbra_memory::MemoryShadows;
use antumbra_service::shadows::{
    DocumentSet, Layout, ListQuery, Read, ReadConsistency, ShadowStore, StoreError, Write,
};
use antumbra_testkit::sample::{numbers, shadow, whole};
use antumbra_testkit::{Failing, Faults};

fn all_of(faults: Faults) -> Failing<MemoryShadows> {
    Failing::new(MemoryShadows::new(Layout::Separate), faults, 7)
}

fn writes() -> Vec<Write> {
    (0..200)
        .map(|n| whole(&shadow(&format!("lamp-{n}")), n, 0))
        .collect()
}

/// Returns for each write whether it is stored.
async fn stored(store: &Failing<MemoryShadows>) -> Vec<bool> {
    let mut stored = Vec::new();
    for write in writes() {
        stored.push(numbers(store.inner(), &write.shadow).await.0.is_some());
    }
    stored
}

#[tokio::test]
async fn nothing_fails_without_faults() {
    let store = all_of(Faults::default());
    assert!(store.write_many(&writes()).await.iter().all(Result::is_ok));
    assert!(stored(&store).await.iter().all(|stored| *stored));
}

#[tokio::test]
async fn each_fault_has_its_effect() {
    let always = [
        (
            Faults {
                throttled: 1.0,
                ..Faults::default()
            },
            false,
        ),
        (
            Faults {
                lost_before: 1.0,
                ..Faults::default()
            },
            false,
        ),
        (
            Faults {
                lost_after: 1.0,
                ..Faults::default()
            },
            true,
        ),
    ];
    for (faults, done) in always {
        let store = all_of(faults);
        let writes = &writes()[..1];
        let error = store.write_many(writes).await.remove(0).unwrap_err();
        let throttled = faults.throttled > 0.0;
        assert_eq!(error == StoreError::Throttled, throttled);
        assert!(error.is_retryable());
        assert_eq!(stored(&store).await[0], done, "{faults:?}");

        let read = Read {
            shadow: writes[0].shadow.clone(),
            parts: DocumentSet::Both,
        };
        let read = store.read_many(&[read], ReadConsistency::Strong).await;
        assert!(read[0].as_ref().unwrap_err().is_retryable());
        let listed = store.list(&ListQuery::All, 10, None).await;
        assert!(listed.unwrap_err().is_retryable());
    }
}

#[tokio::test]
async fn the_seed_decides_and_results_are_correct() {
    let faults = Faults {
        throttled: 0.2,
        lost_before: 0.2,
        lost_after: 0.2,
    };
    let run = async |seed| {
        let store = Failing::new(MemoryShadows::new(Layout::Separate), faults, seed);
        let results = store.write_many(&writes()).await;
        (results, stored(&store).await)
    };
    let (results, stored) = run(1).await;
    assert_eq!((results.clone(), stored.clone()), run(1).await);
    assert_ne!(results, run(2).await.0);
    let mut lost = [0, 0];
    for (result, stored) in results.iter().zip(stored) {
        match result {
            Ok(_) => assert!(stored),
            Err(StoreError::Throttled) => assert!(!stored),
            Err(_) => lost[usize::from(stored)] += 1,
        }
    }
    assert!(lost[0] > 20 && lost[1] > 20, "{lost:?}");
}
