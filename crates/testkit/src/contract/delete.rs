//! Deletes: of a version or of whatever is there, both or none.

use antumbra_service::shadows::{
    Delete, Expect, Layout, Persistence, PersistenceError, Version, Write,
};

use crate::sample::{delete, delete_one, new, number, numbers, shadow, whole, write, write_one};

fn version(version: i64) -> Expect {
    Expect::Version(Version(version))
}

pub async fn a_delete_of_anything_always_succeeds<P: Persistence>(store: P) {
    let lamp = shadow("lamp");
    assert_eq!(delete_one(&store, delete(&lamp, Expect::Any)).await, Ok(()));
    write_one(&store, whole(&lamp, 1, 0)).await.unwrap();
    assert_eq!(delete_one(&store, delete(&lamp, Expect::Any)).await, Ok(()));
    assert_eq!(numbers(&store, &lamp).await, (None, None));
    assert_eq!(delete_one(&store, delete(&lamp, Expect::Any)).await, Ok(()));
}

pub async fn a_delete_of_a_version_is_conditional<P: Persistence>(store: P) {
    let lamp = shadow("lamp");
    for absent in [0, 1, 2] {
        let deleted = delete_one(&store, delete(&lamp, version(absent))).await;
        assert_eq!(deleted, Err(PersistenceError::NotFound));
    }
    write_one(&store, whole(&lamp, 1, 0)).await.unwrap();
    write_one(&store, whole(&lamp, 2, 1)).await.unwrap();
    for wrong in [0, 1, 3] {
        let deleted = delete_one(&store, delete(&lamp, version(wrong))).await;
        let conflict = PersistenceError::Conflict {
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
    assert_eq!(again, Err(PersistenceError::NotFound));
}

pub async fn both_documents_are_deleted_together_or_not_at_all<P: Persistence>(store: P) {
    let lamp = shadow("lamp");
    write_one(&store, whole(&lamp, 1, 0)).await.unwrap();
    let uneven = |reported, desired| Delete {
        shadow: lamp.clone(),
        reported: Some(reported),
        desired: Some(desired),
    };
    let refused = [
        (version(1), version(2)),
        (version(2), version(1)),
        (Expect::Any, version(2)),
        (version(2), Expect::Any),
    ];
    for (reported, desired) in refused {
        let deleted = delete_one(&store, uneven(reported, desired)).await;
        match store.layout() {
            Layout::Separate => assert!(
                matches!(deleted, Err(PersistenceError::Conflict { expected, actual })
                    if (expected, actual) == (Version(2), Some(Version(1)))),
                "{deleted:?}"
            ),
            Layout::Combined => assert!(
                matches!(deleted, Err(PersistenceError::Invalid(_))),
                "{deleted:?}"
            ),
        }
        let (reported, desired) = numbers(&store, &lamp).await;
        assert!(reported.is_some() && desired.is_some());
    }
    if store.layout() == Layout::Separate {
        let deleted = delete_one(&store, uneven(Expect::Any, version(1))).await;
        assert_eq!(deleted, Ok(()));
        assert_eq!(numbers(&store, &lamp).await, (None, None));
    }
}

pub async fn one_document_alone_is_deleted_where_they_lie_apart<P: Persistence>(store: P) {
    let lamp = shadow("lamp");
    write_one(&store, whole(&lamp, 1, 0)).await.unwrap();
    let reported = |expect| Delete {
        shadow: lamp.clone(),
        reported: Some(expect),
        desired: None,
    };
    let desired = Delete {
        shadow: lamp.clone(),
        reported: None,
        desired: Some(version(1)),
    };
    if store.layout() == Layout::Combined {
        for half in [reported(Expect::Any), reported(version(1)), desired] {
            let deleted = delete_one(&store, half).await;
            assert!(matches!(deleted, Err(PersistenceError::Invalid(_))));
        }
        assert!(numbers(&store, &lamp).await.0.is_some());
        return;
    }
    assert_eq!(delete_one(&store, reported(version(1))).await, Ok(()));
    let (gone, left) = numbers(&store, &lamp).await;
    assert_eq!((gone, left), (None, Some((r#"{"n":1}"#.to_owned(), 1))));
    assert_eq!(
        delete_one(&store, reported(version(1))).await,
        Err(PersistenceError::NotFound)
    );
    let both = delete(&lamp, version(1));
    assert_eq!(
        delete_one(&store, both).await,
        Err(PersistenceError::NotFound)
    );
    assert!(numbers(&store, &lamp).await.1.is_some());
    assert_eq!(delete_one(&store, desired).await, Ok(()));
    assert_eq!(numbers(&store, &lamp).await, (None, None));
}

pub async fn a_delete_of_nothing_is_invalid<P: Persistence>(store: P) {
    let nothing = Delete {
        shadow: shadow("lamp"),
        reported: None,
        desired: None,
    };
    let below = delete(&shadow("lamp"), version(-1));
    for bad in [nothing, below] {
        let deleted = delete_one(&store, bad).await;
        assert!(matches!(deleted, Err(PersistenceError::Invalid(_))));
    }
}

pub async fn what_was_deleted_starts_again_at_one<P: Persistence>(store: P) {
    let lamp = shadow("lamp");
    for n in 0..3 {
        write_one(&store, whole(&lamp, n, 0)).await.unwrap();
        write_one(&store, whole(&lamp, n, 1)).await.unwrap();
        delete_one(&store, delete(&lamp, version(2))).await.unwrap();
    }
    if store.layout() == Layout::Separate {
        write_one(&store, whole(&lamp, 1, 0)).await.unwrap();
        let reported = Delete {
            shadow: lamp.clone(),
            reported: Some(Expect::Any),
            desired: None,
        };
        delete_one(&store, reported).await.unwrap();
        let again = Write {
            reported: new(number(2), 0),
            desired: new(number(2), 1),
            ..write(&lamp)
        };
        let written = write_one(&store, again).await.unwrap();
        assert_eq!(written.reported, Some(Version(1)));
        assert_eq!(written.desired, Some(Version(2)));
    }
}
