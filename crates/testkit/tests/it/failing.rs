//! Faults of the failing store.

use antumbra_memory::MemoryShadows;
use antumbra_service::shadows::{
    DocumentSet, Layout, Read, ReadConsistency, ShadowStore, StoreError, Write,
};
use antumbra_testkit::sample::{numbers, shadow, whole};
use antumbra_testkit::{Failing, Faults};

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

    // Reads and listings fail too, and nothing fails without faults.
    for (throttled, fails) in [(1.0, true), (0.0, false)] {
        let faults = Faults {
            throttled,
            ..Faults::default()
        };
        let store = Failing::new(MemoryShadows::new(Layout::Separate), faults, 7);
        let written = store.write_many(&writes()).await;
        assert!(written.iter().all(|written| written.is_err() == fails));
        let read = Read {
            shadow: shadow("lamp-0"),
            parts: DocumentSet::Both,
        };
        let read = store.read(&read, ReadConsistency::Strong).await;
        assert_eq!(read.is_err(), fails);
        let listed = store.list("lamp-0", 10, None).await;
        assert_eq!(listed.is_err(), fails);
    }
}
