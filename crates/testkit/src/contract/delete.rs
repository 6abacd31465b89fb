//! Deletes: conditional or not, of both documents or none.

use std::time::Duration;

use antumbra_service::shadows::{
    Delete, DeletedVersions, DocumentSet, ExpectedVersion, Layout, ShadowStore, Snapshot,
    StoreError, VERSION_KEPT, Version, Write,
};

use crate::sample::{
    DELETED, NOW, delete, delete_one, new, number, numbers, read_one, shadow, whole, write,
    write_one,
};

fn version(version: i64) -> ExpectedVersion {
    ExpectedVersion::Version(Version(version))
}

pub async fn an_unconditional_delete_always_succeeds<P: ShadowStore>(store: P) {
    let lamp = shadow("lamp");
    assert_eq!(
        delete_one(&store, delete(&lamp, ExpectedVersion::Any)).await,
        Ok(())
    );
    write_one(&store, whole(&lamp, 1, 0)).await.unwrap();
    assert_eq!(
        delete_one(&store, delete(&lamp, ExpectedVersion::Any)).await,
        Ok(())
    );
    assert_eq!(numbers(&store, &lamp).await, (None, None));
    assert_eq!(
        delete_one(&store, delete(&lamp, ExpectedVersion::Any)).await,
        Ok(())
    );
}

pub async fn a_delete_with_a_version_is_conditional<P: ShadowStore>(store: P) {
    let lamp = shadow("lamp");
    for absent in [0, 1, 2] {
        let deleted = delete_one(&store, delete(&lamp, version(absent))).await;
        assert_eq!(deleted, Err(StoreError::NotFound));
    }
    write_one(&store, whole(&lamp, 1, 0)).await.unwrap();
    write_one(&store, whole(&lamp, 2, 1)).await.unwrap();
    for wrong in [0, 1, 3] {
        let deleted = delete_one(&store, delete(&lamp, version(wrong))).await;
        let conflict = StoreError::Conflict {
            expected: Version(wrong),
            actual: Some(Version(2)),
        };
        assert_eq!(deleted, Err(conflict));
        assert_eq!(numbers(&store, &lamp).await.0.unwrap().1, 2);
    }
    let deleted = delete_one(&store, delete(&lamp, version(2))).await;
    assert_eq!(deleted, Ok(()));
    assert_eq!(numbers(&store, &lamp).await, (None, None));
    let again = delete_one(&store, delete(&lamp, version(2))).await;
    assert_eq!(again, Err(StoreError::NotFound));
}

pub async fn both_documents_are_deleted_together_or_not_at_all<P: ShadowStore>(store: P) {
    let lamp = shadow("lamp");
    write_one(&store, whole(&lamp, 1, 0)).await.unwrap();
    let uneven = |reported, desired| Delete {
        shadow: lamp.clone(),
        reported: Some(reported),
        desired: Some(desired),
        other_version: None,
        time: None,
    };
    let rejected = [
        (version(1), version(2)),
        (version(2), version(1)),
        (ExpectedVersion::Any, version(2)),
        (version(2), ExpectedVersion::Any),
    ];
    for (reported, desired) in rejected {
        let deleted = delete_one(&store, uneven(reported, desired)).await;
        match store.layout() {
            Layout::Separate => assert!(
                matches!(deleted, Err(StoreError::Conflict { expected, actual })
                    if (expected, actual) == (Version(2), Some(Version(1)))),
                "{deleted:?}"
            ),
            Layout::Combined => assert!(
                matches!(deleted, Err(StoreError::Invalid(_))),
                "{deleted:?}"
            ),
        }
        let (reported, desired) = numbers(&store, &lamp).await;
        assert!(reported.is_some() && desired.is_some());
    }
    if store.layout() == Layout::Separate {
        let deleted = delete_one(&store, uneven(ExpectedVersion::Any, version(1))).await;
        assert_eq!(deleted, Ok(()));
        assert_eq!(numbers(&store, &lamp).await, (None, None));
    }
}

pub async fn the_separate_layout_deletes_one_document_alone<P: ShadowStore>(store: P) {
    let lamp = shadow("lamp");
    write_one(&store, whole(&lamp, 1, 0)).await.unwrap();
    let reported = |expect| Delete {
        shadow: lamp.clone(),
        reported: Some(expect),
        desired: None,
        other_version: None,
        time: None,
    };
    let desired = Delete {
        shadow: lamp.clone(),
        reported: None,
        desired: Some(version(1)),
        other_version: None,
        time: None,
    };
    if store.layout() == Layout::Combined {
        for half in [
            reported(ExpectedVersion::Any),
            reported(version(1)),
            desired,
        ] {
            let deleted = delete_one(&store, half).await;
            assert!(matches!(deleted, Err(StoreError::Invalid(_))));
        }
        assert!(numbers(&store, &lamp).await.0.is_some());
        return;
    }
    assert_eq!(delete_one(&store, reported(version(1))).await, Ok(()));
    let (gone, left) = numbers(&store, &lamp).await;
    assert_eq!((gone, left), (None, Some((r#"{"n":1}"#.to_owned(), 1))));
    assert_eq!(
        delete_one(&store, reported(version(1))).await,
        Err(StoreError::NotFound)
    );
    let both = delete(&lamp, version(1));
    assert_eq!(delete_one(&store, both).await, Err(StoreError::NotFound));
    assert!(numbers(&store, &lamp).await.1.is_some());
    assert_eq!(delete_one(&store, desired).await, Ok(()));
    assert_eq!(numbers(&store, &lamp).await, (None, None));
}

pub async fn a_delete_can_require_a_version_of_the_other_document<P: ShadowStore>(store: P) {
    let lamp = shadow("lamp");
    write_one(&store, whole(&lamp, 1, 0)).await.unwrap();
    let holding = |other: i64| Delete {
        shadow: lamp.clone(),
        reported: Some(version(1)),
        desired: None,
        other_version: Some(Version(other)),
        time: None,
    };
    let both = Delete {
        desired: Some(version(1)),
        ..holding(1)
    };
    let deleted = delete_one(&store, both).await;
    assert!(matches!(deleted, Err(StoreError::Invalid(_))));
    if store.layout() == Layout::Combined {
        return;
    }
    let (expected, actual) = (Version(0), Some(Version(1)));
    let conflict = StoreError::Conflict { expected, actual };
    assert_eq!(delete_one(&store, holding(0)).await, Err(conflict));
    assert!(numbers(&store, &lamp).await.0.is_some());
    assert_eq!(delete_one(&store, holding(1)).await, Ok(()));
    assert!(numbers(&store, &lamp).await.0.is_none());
    // Both are absent now; the one that remains must be, too.
    let desired = Delete {
        desired: Some(version(1)),
        reported: None,
        ..holding(1)
    };
    let (expected, actual) = (Version(1), None);
    let conflict = StoreError::Conflict { expected, actual };
    assert_eq!(delete_one(&store, desired).await, Err(conflict));
    let desired = Delete {
        desired: Some(version(1)),
        reported: None,
        ..holding(0)
    };
    assert_eq!(delete_one(&store, desired).await, Ok(()));
}

pub async fn an_empty_delete_is_invalid<P: ShadowStore>(store: P) {
    let nothing = Delete {
        shadow: shadow("lamp"),
        reported: None,
        desired: None,
        other_version: None,
        time: None,
    };
    let below = delete(&shadow("lamp"), version(-1));
    for bad in [nothing, below] {
        let deleted = delete_one(&store, bad).await;
        assert!(matches!(deleted, Err(StoreError::Invalid(_))));
    }
}

pub async fn a_recreated_document_continues_its_versions<P: ShadowStore>(store: P) {
    let lamp = shadow("lamp");
    for n in 0..3 {
        let created = write_one(&store, whole(&lamp, n, 0)).await.unwrap();
        assert_eq!(created.reported, Some(Version(2 * n + 1)));
        assert_eq!(created.desired, Some(Version(2 * n + 1)));
        write_one(&store, whole(&lamp, n, 2 * n + 1)).await.unwrap();
        let at = version(2 * n + 2);
        delete_one(&store, delete(&lamp, at)).await.unwrap();
    }
    // A deleted document cannot be updated with its former version.
    let over = write_one(&store, whole(&lamp, 9, 6)).await;
    let conflict = StoreError::Conflict {
        expected: Version(6),
        actual: None,
    };
    assert_eq!(over, Err(conflict));
    if store.layout() == Layout::Separate {
        write_one(&store, whole(&lamp, 1, 0)).await.unwrap();
        let reported = Delete {
            shadow: lamp.clone(),
            reported: Some(ExpectedVersion::Any),
            desired: None,
            other_version: None,
            time: None,
        };
        delete_one(&store, reported).await.unwrap();
        let again = Write {
            reported: new(number(2), 0),
            desired: new(number(2), 7),
            ..write(&lamp)
        };
        let written = write_one(&store, again).await.unwrap();
        assert_eq!(written.reported, Some(Version(8)));
        assert_eq!(written.desired, Some(Version(8)));
    }
}

/// The time of the last delete counts, not of an earlier one.
pub async fn an_expired_tombstone_restarts_versions_at_one<P: ShadowStore>(store: P) {
    let lamp = shadow("lamp");
    let at = |seconds_to_go: u64, n| Write {
        timestamp: DELETED.after(VERSION_KEPT - Duration::from_secs(seconds_to_go)),
        ..whole(&lamp, n, 0)
    };
    write_one(&store, whole(&lamp, 1, 0)).await.unwrap();
    delete_one(&store, delete(&lamp, ExpectedVersion::Any))
        .await
        .unwrap();
    let written = write_one(&store, at(1, 2)).await.unwrap();
    assert_eq!(written.reported, Some(Version(2)));
    delete_one(&store, delete(&lamp, ExpectedVersion::Any))
        .await
        .unwrap();
    let written = write_one(&store, at(0, 3)).await.unwrap();
    assert_eq!(written.reported, Some(Version(1)));
    assert_eq!(numbers(&store, &lamp).await.0.unwrap().1, 1);
}

/// Otherwise the time of a document would not increase with every write.
pub async fn a_document_is_created_again_only_later_than_it_was_deleted<P: ShadowStore>(store: P) {
    let lamp = shadow("lamp");
    let at = |timestamp, n| Write {
        timestamp,
        ..whole(&lamp, n, 0)
    };
    write_one(&store, whole(&lamp, 1, 0)).await.unwrap();
    let deleted = Delete {
        // The time of the message is not that of the write.
        time: Some(NOW.after(Duration::from_secs(60))),
        ..delete(&lamp, ExpectedVersion::Any)
    };
    store.delete(&deleted, NOW).await.unwrap();
    let conflict = StoreError::Conflict {
        expected: Version::NONE,
        actual: None,
    };
    for early in [DELETED, NOW] {
        assert_eq!(write_one(&store, at(early, 2)).await, Err(conflict.clone()));
    }
    let later = NOW.after(Duration::from_nanos(1));
    let written = write_one(&store, at(later, 3)).await.unwrap();
    assert_eq!(written.reported, Some(Version(2)));
}

pub async fn only_the_version_of_a_deleted_document_is_read<P: ShadowStore>(store: P) {
    let lamp = shadow("lamp");
    write_one(&store, whole(&lamp, 1, 0)).await.unwrap();
    delete_one(&store, delete(&lamp, ExpectedVersion::Any))
        .await
        .unwrap();
    for (parts, reported, desired) in [
        (DocumentSet::Both, 1, 1),
        (DocumentSet::Reported, 1, 0),
        (DocumentSet::Desired, 0, 1),
    ] {
        let gone = DeletedVersions {
            reported: Version(reported),
            desired: Version(desired),
            at: Some(DELETED),
            written: [reported, desired].map(|version| (version > 0).then_some(DELETED)),
            previous: [reported, desired].map(|version| (version > 0).then_some(NOW)),
        };
        let found = read_one(&store, &lamp, parts).await;
        let only = Snapshot {
            deleted: gone,
            ..Snapshot::default()
        };
        assert_eq!(found, Ok(only), "{parts:?}");
    }
    let absent = read_one(&store, &shadow("fan"), DocumentSet::Both).await;
    assert_eq!(absent, Err(StoreError::NotFound));
}
