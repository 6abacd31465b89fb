//! Reads return the requested documents, in request order.

use antumbra_service::shadows::{
    DocumentSet, Layout, Read, ReadConsistency, ShadowStore, Snapshot, StoreError, Version, Write,
};

use crate::sample::{
    new, number, numbers, only, read_one, report_of, shadow, whole, write, write_one,
};

const PARTS: [DocumentSet; 3] = [
    DocumentSet::Reported,
    DocumentSet::Desired,
    DocumentSet::Both,
];

pub async fn an_absent_shadow_is_not_found<P: ShadowStore>(store: P) {
    write_one(&store, whole(&shadow("other"), 1, 0))
        .await
        .unwrap();
    for parts in PARTS {
        for consistency in [
            ReadConsistency::Eventual,
            ReadConsistency::Strong,
            ReadConsistency::Snapshot,
        ] {
            let read = Read {
                shadow: shadow("lamp"),
                parts,
            };
            let found = only(store.read_many(&[read], consistency).await);
            assert_eq!(found, Err(StoreError::NotFound));
        }
    }
}

pub async fn a_read_returns_only_the_requested_documents<P: ShadowStore>(store: P) {
    let lamp = shadow("lamp");
    let both = Write {
        reported: new(number(1), 0),
        desired: new(number(2), 0),
        ..write(&lamp)
    };
    write_one(&store, both).await.unwrap();
    for parts in PARTS {
        for consistency in [ReadConsistency::Strong, ReadConsistency::Snapshot] {
            let read = Read {
                shadow: lamp.clone(),
                parts,
            };
            let found = only(store.read_many(&[read], consistency).await).unwrap();
            let documents =
                |held: Option<antumbra_service::shadows::StoredDocument>| held.map(|h| h.document);
            let reported = (parts != DocumentSet::Desired).then(|| number(1));
            let desired = (parts != DocumentSet::Reported).then(|| number(2));
            assert_eq!(documents(found.reported), reported, "{parts:?}");
            assert_eq!(documents(found.desired), desired, "{parts:?}");
        }
    }
    if store.layout() == Layout::Combined {
        return;
    }
    let half = shadow("half");
    let reported = report_of(&half, 1, 0);
    write_one(&store, reported).await.unwrap();
    for consistency in [ReadConsistency::Strong, ReadConsistency::Snapshot] {
        let reads = PARTS.map(|parts| Read {
            shadow: half.clone(),
            parts,
        });
        let found = store.read_many(&reads, consistency).await;
        assert!(found[0].as_ref().unwrap().reported.is_some());
        assert_eq!(found[1], Err(StoreError::NotFound));
        assert_eq!(found[0], found[2], "half of it is there");
    }
}

pub async fn a_strong_read_sees_every_completed_write<P: ShadowStore>(store: P) {
    let lamp = shadow("lamp");
    for version in 0..20 {
        write_one(&store, whole(&lamp, version, version))
            .await
            .unwrap();
        for consistency in [ReadConsistency::Strong, ReadConsistency::Snapshot] {
            let read = Read {
                shadow: lamp.clone(),
                parts: DocumentSet::Both,
            };
            let found = only(store.read_many(&[read], consistency).await).unwrap();
            for held in [found.reported.unwrap(), found.desired.unwrap()] {
                assert_eq!(held.version, Version(version + 1));
                assert_eq!(held.document, number(version));
            }
        }
    }
}

pub async fn a_snapshot_does_not_change_after_the_read<P: ShadowStore>(store: P) {
    let lamp = shadow("lamp");
    let first = whole(&lamp, 1, 0);
    write_one(&store, first.clone()).await.unwrap();
    let read = read_one(&store, &lamp, DocumentSet::Both).await.unwrap();
    let before = read.clone();
    write_one(&store, whole(&lamp, 2, 1)).await.unwrap();
    assert_eq!(read, before);
    assert_eq!(first, whole(&lamp, 1, 0), "nor did what was written");
    drop(read);
    assert_eq!(numbers(&store, &lamp).await.0.unwrap().1, 2);
}

/// Exceeds the batch size of every store; some shadows are absent.
pub async fn reads_return_results_in_request_order<P: ShadowStore>(store: P) {
    let shadows: Vec<_> = (0..130).map(|n| shadow(&format!("lamp-{n}"))).collect();
    let there = |n: &usize| n % 7 != 3;
    let writes: Vec<Write> = (0..130)
        .filter(there)
        .map(|n| whole(&shadows[n], n as i64, 0))
        .collect();
    assert!(store.write_many(&writes).await.iter().all(Result::is_ok));
    let reads: Vec<Read> = (0..130)
        .rev()
        .map(|n| Read {
            shadow: shadows[n].clone(),
            parts: PARTS[n % 3],
        })
        .collect();
    for consistency in [
        ReadConsistency::Eventual,
        ReadConsistency::Strong,
        ReadConsistency::Snapshot,
    ] {
        let found = store.read_many(&reads, consistency).await;
        assert_eq!(found.len(), reads.len());
        for (n, found) in (0..130).rev().zip(found) {
            if !there(&n) {
                assert_eq!(found, Err(StoreError::NotFound));
                continue;
            }
            let Snapshot {
                reported, desired, ..
            } = found.unwrap();
            assert_eq!(reported.is_some(), PARTS[n % 3] != DocumentSet::Desired);
            assert_eq!(desired.is_some(), PARTS[n % 3] != DocumentSet::Reported);
            let held = reported.or(desired).unwrap();
            assert_eq!(held.document, number(n as i64));
        }
    }
}

pub async fn one_batch_may_read_a_shadow_twice<P: ShadowStore>(store: P) {
    let lamp = shadow("lamp");
    write_one(&store, whole(&lamp, 1, 0)).await.unwrap();
    let parts = [
        DocumentSet::Both,
        DocumentSet::Reported,
        DocumentSet::Both,
        DocumentSet::Desired,
        DocumentSet::Reported,
    ];
    let reads = parts.map(|parts| Read {
        shadow: lamp.clone(),
        parts,
    });
    for consistency in [ReadConsistency::Strong, ReadConsistency::Snapshot] {
        let found = store.read_many(&reads, consistency).await;
        assert!(found.iter().all(Result::is_ok), "{found:?}");
        assert_eq!(found[0], found[2]);
        assert_eq!(found[1], found[4]);
        assert!(found[3].as_ref().unwrap().reported.is_none());
    }
}
