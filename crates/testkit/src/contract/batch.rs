//! Batches return one result per operation, in request order.

use antumbra_service::shadows::{
    ExpectedVersion, Layout, ReadConsistency, ShadowStore, StoreError, Version, Write,
};

use crate::sample::{NOW, delete, desire_of, numbers, report_of, shadow, whole, write, write_one};

pub async fn an_empty_batch_returns_no_results<P: ShadowStore>(store: P) {
    assert!(
        store
            .read_many(&[], ReadConsistency::Strong)
            .await
            .is_empty()
    );
    assert!(
        store
            .read_many(&[], ReadConsistency::Snapshot)
            .await
            .is_empty()
    );
    assert!(store.write_many(&[]).await.is_empty());
    assert!(store.delete_many(&[], NOW).await.is_empty());
}

pub async fn different_shadows_are_independent<P: ShadowStore>(store: P) {
    let shadows: Vec<_> = (0..40).map(|n| shadow(&format!("lamp-{n}"))).collect();
    write_one(&store, whole(&shadows[20], 0, 0)).await.unwrap();
    let writes: Vec<Write> = shadows
        .iter()
        .enumerate()
        .map(|(n, shadow)| match n {
            10 => write(shadow),
            30 => whole(shadow, n as i64, 5),
            _ => whole(shadow, n as i64, 0),
        })
        .collect();
    let results = store.write_many(&writes).await;
    assert_eq!(results.len(), 40);
    for (n, result) in results.iter().enumerate() {
        let conflict = |expected, actual| {
            Err(StoreError::Conflict {
                expected: Version(expected),
                actual,
            })
        };
        match n {
            10 => assert!(matches!(result, Err(StoreError::Invalid(_)))),
            20 => assert_eq!(*result, conflict(0, Some(Version(1)))),
            30 => assert_eq!(*result, conflict(5, None)),
            _ => {
                assert_eq!(result.as_ref().unwrap().desired, Some(Version(1)));
                let (reported, _) = numbers(&store, &shadows[n]).await;
                assert_eq!(reported.unwrap().0, format!(r#"{{"n":{n}}}"#));
            }
        }
    }
    let deletes: Vec<_> = shadows
        .iter()
        .map(|shadow| delete(shadow, ExpectedVersion::Version(Version(1))))
        .collect();
    for (n, result) in store
        .delete_many(&deletes, NOW)
        .await
        .into_iter()
        .enumerate()
    {
        match n {
            10 | 30 => assert_eq!(result, Err(StoreError::NotFound)),
            _ => assert_eq!(result, Ok(())),
        }
    }
}

pub async fn writes_to_one_shadow_keep_their_order<P: ShadowStore>(store: P) {
    let (lamp, other) = (shadow("lamp"), shadow("other"));
    let writes = [
        whole(&lamp, 1, 0),
        whole(&other, 1, 0),
        whole(&lamp, 2, 1),
        whole(&lamp, 9, 1),
        whole(&lamp, 3, 2),
        whole(&other, 2, 1),
    ];
    let results = store.write_many(&writes).await;
    let versions: Vec<_> = results
        .iter()
        .map(|result| result.as_ref().ok()?.reported.map(|version| version.0))
        .collect();
    assert_eq!(
        versions,
        [Some(1), Some(1), Some(2), None, Some(3), Some(2)]
    );
    assert_eq!(
        results[3],
        Err(StoreError::Conflict {
            expected: Version(1),
            actual: Some(Version(2))
        })
    );
    let (reported, _) = numbers(&store, &lamp).await;
    assert_eq!(reported, Some((r#"{"n":3}"#.to_owned(), 3)));
    if store.layout() == Layout::Separate {
        let writes = [
            report_of(&lamp, 4, 3),
            desire_of(&lamp, 5, 3),
            whole(&lamp, 6, 4),
        ];
        assert!(store.write_many(&writes).await.iter().all(Result::is_ok));
        let (reported, desired) = numbers(&store, &lamp).await;
        assert_eq!(reported, Some((r#"{"n":6}"#.to_owned(), 5)));
        assert_eq!(desired, reported);
    }
}

pub async fn deletes_of_one_shadow_keep_their_order<P: ShadowStore>(store: P) {
    let lamp = shadow("lamp");
    write_one(&store, whole(&lamp, 1, 0)).await.unwrap();
    let deletes = [
        delete(&lamp, ExpectedVersion::Version(Version(2))),
        delete(&lamp, ExpectedVersion::Version(Version(1))),
        delete(&lamp, ExpectedVersion::Version(Version(1))),
        delete(&lamp, ExpectedVersion::Any),
    ];
    let results = store.delete_many(&deletes, NOW).await;
    assert!(matches!(results[0], Err(StoreError::Conflict { .. })));
    assert_eq!(results[1], Ok(()));
    assert_eq!(results[2], Err(StoreError::NotFound));
    assert_eq!(results[3], Ok(()));
}
