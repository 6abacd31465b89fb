//! Concurrent callers.

use antumbra_service::shadows::{
    DocumentSet, Read, ReadConsistency, ShadowStore, StoreError, Version,
};
use futures_util::future::{join, join_all};

use crate::sample::{numbers, only, read_one, shadow, whole, write_one};

pub async fn one_of_many_concurrent_writers_wins<P: ShadowStore>(store: P) {
    let lamp = shadow("lamp");
    for version in 0..5 {
        let writers = (0..16).map(|writer| write_one(&store, whole(&lamp, writer, version)));
        let results = join_all(writers).await;
        let winners: Vec<i64> = (0..16)
            .zip(&results)
            .filter_map(|(writer, result)| result.as_ref().ok().map(|_| writer))
            .collect();
        let [winner] = winners[..] else {
            panic!("{results:?}");
        };
        for result in results.iter().filter_map(|result| result.as_ref().err()) {
            let conflict = StoreError::Conflict {
                expected: Version(version),
                actual: Some(Version(version + 1)),
            };
            assert!(*result == conflict || result.is_retryable(), "{result:?}");
        }
        let (reported, desired) = numbers(&store, &lamp).await;
        assert_eq!(
            reported,
            Some((format!(r#"{{"n":{winner}}}"#), version + 1))
        );
        assert_eq!(desired, reported);
    }
}

/// Each writer increments the value it read until its write succeeds: no increment is lost or counted twice.
pub async fn concurrent_writers_that_retry_all_succeed<P: ShadowStore>(store: P) {
    let lamp = shadow("lamp");
    let writer = async || {
        loop {
            let (n, version) = match read_one(&store, &lamp, DocumentSet::Reported).await {
                Err(StoreError::NotFound) => (0, 0),
                found => {
                    let held = found.unwrap().reported.unwrap();
                    let n = held.document.pointer("/n").unwrap();
                    (n.as_number().unwrap().parse().unwrap(), held.version.0)
                }
            };
            match write_one(&store, whole(&lamp, n + 1, version)).await {
                Ok(_) => return,
                Err(StoreError::Conflict { .. } | StoreError::Throttled) => {}
                Err(error) => panic!("{error}"),
            }
        }
    };
    join_all((0..12).map(|_| writer())).await;
    let (reported, desired) = numbers(&store, &lamp).await;
    assert_eq!(reported, Some((r#"{"n":12}"#.to_owned(), 12)));
    assert_eq!(desired, reported);
}

/// Both documents always have the same value, so a snapshot in which they differ is inconsistent.
pub async fn a_snapshot_is_consistent<P: ShadowStore>(store: P) {
    let lamp = shadow("lamp");
    write_one(&store, whole(&lamp, 0, 0)).await.unwrap();
    let write = async {
        let mut version = 1;
        while version < 30 {
            match write_one(&store, whole(&lamp, version, version)).await {
                Ok(_) => version += 1,
                Err(error) => assert_eq!(error, StoreError::Throttled),
            }
        }
    };
    let read = async {
        let mut seen = 0;
        while seen < 30 {
            let read = Read {
                shadow: lamp.clone(),
                parts: DocumentSet::Both,
            };
            let found = only(store.read_many(&[read], ReadConsistency::Snapshot).await).unwrap();
            let (reported, desired) = (found.reported.unwrap(), found.desired.unwrap());
            assert_eq!(reported, desired);
            assert!(reported.version.0 >= seen, "never back in time");
            seen = reported.version.0;
        }
    };
    join(write, read).await;
}
