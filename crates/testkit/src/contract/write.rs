//! Writes: conditional on the version, of both documents or none.

use antumbra_service::shadows::{
    ClientToken, Delete, DocumentSet, ExpectedVersion, Layout, ShadowId, ShadowStore, StoreError,
    StoredDocument, Version, Write, Written, Zone,
};
use antumbra_shadow::{LeafTimes, Timestamp};

use crate::sample::{
    NOW, TextAndVersion, delete, delete_one, desire_of, document, new, number, numbers, read_one,
    report_of, shadow, whole, write, write_one,
};

fn conflict<T>(expected: i64, actual: Option<i64>) -> Result<T, StoreError> {
    Err(StoreError::Conflict {
        expected: Version(expected),
        actual: actual.map(Version),
    })
}

fn is_invalid<T>(result: &Result<T, StoreError>) -> bool {
    matches!(result, Err(StoreError::Invalid(_)))
}

/// Both documents as [`numbers`] returns them.
fn at(n: i64, version: i64) -> (TextAndVersion, TextAndVersion) {
    let one = Some((format!(r#"{{"n":{n}}}"#), version));
    (one.clone(), one)
}

pub async fn the_first_write_creates_version_one<P: ShadowStore>(store: P) {
    let lamp = shadow("lamp");
    let written = write_one(&store, whole(&lamp, 1, 0)).await;
    let one = Some(Version(1));
    let expected = Written {
        reported: one,
        desired: one,
    };
    assert_eq!(written, Ok(expected));
    assert_eq!(numbers(&store, &lamp).await, at(1, 1));
}

pub async fn a_write_raises_the_version_by_one<P: ShadowStore>(store: P) {
    let lamp = shadow("lamp");
    for version in 0..12 {
        let written = write_one(&store, whole(&lamp, 100 + version, version)).await;
        assert_eq!(written.unwrap().reported, Some(Version(version + 1)));
        assert_eq!(numbers(&store, &lamp).await, at(100 + version, version + 1));
    }
}

pub async fn a_write_with_another_version_is_a_conflict<P: ShadowStore>(store: P) {
    let lamp = shadow("lamp");
    write_one(&store, whole(&lamp, 1, 0)).await.unwrap();
    write_one(&store, whole(&lamp, 2, 1)).await.unwrap();
    for wrong in [1, 3, 4, 1_000_000_007] {
        let written = write_one(&store, whole(&lamp, 9, wrong)).await;
        assert_eq!(written, conflict(wrong, Some(2)));
        assert_eq!(numbers(&store, &lamp).await, at(2, 2));
    }
}

pub async fn creating_an_existing_document_is_a_conflict<P: ShadowStore>(store: P) {
    let lamp = shadow("lamp");
    write_one(&store, whole(&lamp, 1, 0)).await.unwrap();
    let written = write_one(&store, whole(&lamp, 2, 0)).await;
    assert_eq!(written, conflict(0, Some(1)));
    assert_eq!(numbers(&store, &lamp).await, at(1, 1));
}

/// An identical write by the same caller is not idempotent.
pub async fn repeating_a_write_is_a_conflict<P: ShadowStore>(store: P) {
    let lamp = shadow("lamp");
    write_one(&store, whole(&lamp, 1, 0)).await.unwrap();
    let again = write_one(&store, whole(&lamp, 1, 0)).await;
    assert_eq!(again, conflict(0, Some(1)));
    if store.layout() == Layout::Separate {
        let alone = || report_of(&lamp, 2, 1);
        write_one(&store, alone()).await.unwrap();
        assert_eq!(write_one(&store, alone()).await, conflict(1, Some(2)));
    }
}

pub async fn updating_an_absent_document_is_a_conflict<P: ShadowStore>(store: P) {
    let lamp = shadow("lamp");
    let written = write_one(&store, whole(&lamp, 1, 3)).await;
    assert_eq!(written, conflict(3, None));
    assert_eq!(numbers(&store, &lamp).await, (None, None));
}

pub async fn both_documents_are_written_together_or_not_at_all<P: ShadowStore>(store: P) {
    let lamp = shadow("lamp");
    write_one(&store, whole(&lamp, 1, 0)).await.unwrap();
    if store.layout() == Layout::Combined {
        assert_eq!(
            write_one(&store, whole(&lamp, 2, 7)).await,
            conflict(7, Some(1))
        );
        assert_eq!(numbers(&store, &lamp).await, at(1, 1));
        return;
    }
    for (reported, desired) in [(1, 4), (4, 1), (1, 0), (0, 1)] {
        let both = Write {
            reported: new(number(2), reported),
            desired: new(number(2), desired),
            ..write(&lamp)
        };
        let wrong = if reported == 1 { desired } else { reported };
        assert_eq!(write_one(&store, both).await, conflict(wrong, Some(1)));
        assert_eq!(numbers(&store, &lamp).await, at(1, 1));
    }
    // One document exists and the other is created.
    let half = shadow("half");
    let first = report_of(&half, 1, 0);
    write_one(&store, first).await.unwrap();
    let both = |desired| Write {
        reported: new(number(2), 1),
        desired: new(number(2), desired),
        ..write(&half)
    };
    assert_eq!(write_one(&store, both(1)).await, conflict(1, None));
    let written = write_one(&store, both(0)).await.unwrap();
    assert_eq!(written.reported, Some(Version(2)));
    assert_eq!(written.desired, Some(Version(1)));
}

pub async fn a_conflict_of_both_documents_names_reported<P: ShadowStore>(store: P) {
    let lamp = shadow("lamp");
    write_one(&store, whole(&lamp, 1, 0)).await.unwrap();
    if store.layout() == Layout::Combined {
        return;
    }
    let desired = desire_of(&lamp, 2, 1);
    write_one(&store, desired).await.unwrap();
    let both = Write {
        reported: new(number(3), 5),
        desired: new(number(3), 6),
        ..write(&lamp)
    };
    assert_eq!(write_one(&store, both).await, conflict(5, Some(1)));
}

pub async fn the_separate_layout_writes_one_document_alone<P: ShadowStore>(store: P) {
    let lamp = shadow("lamp");
    write_one(&store, whole(&lamp, 1, 0)).await.unwrap();
    let reported = report_of(&lamp, 2, 1);
    let desired = desire_of(&lamp, 3, 1);
    if store.layout() == Layout::Combined {
        assert!(is_invalid(&write_one(&store, reported).await));
        assert!(is_invalid(&write_one(&store, desired).await));
        assert_eq!(numbers(&store, &lamp).await, at(1, 1));
        return;
    }
    let written = write_one(&store, reported).await.unwrap();
    assert_eq!(
        (written.reported, written.desired),
        (Some(Version(2)), None)
    );
    let written = write_one(&store, desired).await.unwrap();
    assert_eq!(
        (written.reported, written.desired),
        (None, Some(Version(2)))
    );
    let (reported, desired) = numbers(&store, &lamp).await;
    assert_eq!(reported, Some((r#"{"n":2}"#.to_owned(), 2)));
    assert_eq!(desired, Some((r#"{"n":3}"#.to_owned(), 2)));
}

pub async fn the_combined_layout_has_one_version<P: ShadowStore>(store: P) {
    let lamp = shadow("lamp");
    let uneven = Write {
        reported: new(number(1), 0),
        desired: new(number(1), 1),
        ..write(&lamp)
    };
    let written = write_one(&store, uneven).await;
    match store.layout() {
        Layout::Combined => assert!(is_invalid(&written)),
        Layout::Separate => assert_eq!(written, conflict(1, None)),
    }
    assert_eq!(numbers(&store, &lamp).await, (None, None));
}

pub async fn an_empty_write_is_invalid<P: ShadowStore>(store: P) {
    assert!(is_invalid(&write_one(&store, write(&shadow("lamp"))).await));
}

pub async fn an_impossible_version_is_invalid<P: ShadowStore>(store: P) {
    let lamp = shadow("lamp");
    for version in [-1, i64::MIN, i64::MAX] {
        assert!(is_invalid(
            &write_one(&store, whole(&lamp, 1, version)).await
        ));
    }
    assert_eq!(numbers(&store, &lamp).await, (None, None));
}

/// DynamoDB rejects empty attribute names.
pub async fn an_empty_member_name_is_invalid_at_any_depth<P: ShadowStore>(store: P) {
    let lamp = shadow("lamp");
    for json in [r#"{"":1}"#, r#"{"a":[{"b":{"":1}}]}"#] {
        for (reported, desired) in [(json, "{}"), ("{}", json)] {
            let nameless = Write {
                reported: new(document(reported), 0),
                desired: new(document(desired), 0),
                ..write(&lamp)
            };
            assert!(is_invalid(&write_one(&store, nameless).await), "{json}");
        }
    }
    assert_eq!(numbers(&store, &lamp).await, (None, None));
}

pub async fn an_overlong_member_name_is_invalid<P: ShadowStore>(store: P) {
    let lamp = shadow("lamp");
    let named = |bytes: usize| Write {
        reported: new(document(&format!(r#"{{"{}":1}}"#, "n".repeat(bytes))), 0),
        ..whole(&lamp, 1, 0)
    };
    let rejected = write_one(&store, named(65_536)).await.unwrap_err();
    assert_eq!(
        rejected.to_string(),
        "invalid: a name in a document has 65536 bytes, the limit is 65535"
    );
    assert_eq!(numbers(&store, &lamp).await, (None, None));
    // The JSON parser of DynamoDB Local has a lower limit than DynamoDB.
    write_one(&store, named(50_000)).await.unwrap();
    let (reported, _) = numbers(&store, &lamp).await;
    assert_eq!(reported.unwrap().0.len(), 50_000 + 6);
}

pub async fn a_timestamp_out_of_range_is_invalid<P: ShadowStore>(store: P) {
    let lamp = shadow("lamp");
    let digits = 10_i128.pow(38);
    for (version, nanoseconds) in [1 - digits, digits - 1].into_iter().enumerate() {
        let last = Write {
            timestamp: Timestamp::from_nanoseconds(nanoseconds),
            ..whole(&lamp, 1, version as i64)
        };
        write_one(&store, last).await.unwrap();
        let held = read_one(&store, &lamp, DocumentSet::Reported)
            .await
            .unwrap();
        let timestamp = held.reported.unwrap().timestamp;
        assert_eq!(timestamp.nanoseconds(), nanoseconds);
    }
    for nanoseconds in [digits, -digits] {
        let beyond = Write {
            timestamp: Timestamp::from_nanoseconds(nanoseconds),
            ..whole(&lamp, 1, 2)
        };
        assert!(is_invalid(&write_one(&store, beyond).await));
    }
}

pub async fn the_last_writer_is_stored<P: ShadowStore>(store: P) {
    let lamp = shadow("lamp");
    let stamps = [
        (
            1_700_000_000_123_456_789,
            Some("Europe/Stockholm"),
            Some("token"),
        ),
        (-1, None, Some("å")),
        (0, Some("UTC"), None),
        (i128::from(i64::MAX), None, None),
    ];
    for (version, (nanoseconds, zone, token)) in stamps.into_iter().enumerate() {
        let zone = zone.map(|zone| Zone::new(zone).unwrap());
        let mut stamped = Write {
            timestamp: Timestamp::from_nanoseconds(nanoseconds),
            client_token: token.map(|token| ClientToken::new(token).unwrap()),
            ..whole(&lamp, 1, version as i64)
        };
        for part in [&mut stamped.reported, &mut stamped.desired] {
            part.as_mut().unwrap().zone = zone.clone();
        }
        write_one(&store, stamped.clone()).await.unwrap();
        let found = read_one(&store, &lamp, DocumentSet::Both).await.unwrap();
        for held in [found.reported.unwrap(), found.desired.unwrap()] {
            assert_eq!(held.version, Version(version as i64 + 1));
            assert_eq!(held.timestamp, stamped.timestamp);
            assert_eq!(held.zone, zone);
            assert_eq!(held.client_token, stamped.client_token);
        }
    }
}

pub async fn a_created_document_has_at_least_the_minimum_version<P: ShadowStore>(store: P) {
    let above = |shadow: &ShadowId, floor: i64, expected: i64| {
        let mut write = whole(shadow, 1, expected);
        for part in [&mut write.reported, &mut write.desired] {
            part.as_mut().unwrap().min_version = Version(floor);
        }
        write
    };
    let lamp = shadow("lamp");
    let created = write_one(&store, above(&lamp, 6, 0)).await.unwrap();
    assert_eq!(created.reported, Some(Version(7)));
    // An existing version rises by one, whatever the minimum.
    let written = write_one(&store, above(&lamp, 20, 7)).await.unwrap();
    assert_eq!(written.desired, Some(Version(8)));
    delete_one(&store, delete(&lamp, ExpectedVersion::Any))
        .await
        .unwrap();
    let again = write_one(&store, above(&lamp, 3, 0)).await.unwrap();
    assert_eq!(again.reported, Some(Version(9)));
    delete_one(&store, delete(&lamp, ExpectedVersion::Any))
        .await
        .unwrap();
    let again = write_one(&store, above(&lamp, 30, 0)).await.unwrap();
    assert_eq!(again.reported, Some(Version(31)));
}

pub async fn a_write_can_require_a_version_of_the_other_document<P: ShadowStore>(store: P) {
    let lamp = shadow("lamp");
    let holding = |n: i64, expected: i64, hold: i64| Write {
        reported: new(number(n), expected),
        other_version: Some(Version(hold)),
        ..write(&lamp)
    };
    if store.layout() == Layout::Combined {
        let held = write_one(&store, holding(1, 0, 0)).await;
        assert!(matches!(held, Err(StoreError::Invalid(_))));
        return;
    }
    for wrong in [whole(&lamp, 1, 0), holding(1, 0, 0)] {
        let wrong = Write {
            other_version: Some(Version(-1)),
            ..wrong
        };
        let held = write_one(&store, wrong).await;
        assert!(matches!(held, Err(StoreError::Invalid(_))));
    }
    // An absent or deleted document has version none.
    write_one(&store, holding(1, 0, 0)).await.unwrap();
    let desired = Write {
        desired: new(number(1), 0),
        other_version: Some(Version(1)),
        ..write(&lamp)
    };
    write_one(&store, desired).await.unwrap();
    let rejected = |expected, actual| {
        let conflict = StoreError::Conflict { expected, actual };
        Err(conflict)
    };
    let held = write_one(&store, holding(2, 1, 0)).await;
    assert_eq!(held, rejected(Version(0), Some(Version(1))));
    let held = write_one(&store, holding(2, 1, 2)).await;
    assert_eq!(held, rejected(Version(2), Some(Version(1))));
    assert_eq!(numbers(&store, &lamp).await.0.unwrap().1, 1);
    let written = write_one(&store, holding(2, 1, 1)).await.unwrap();
    assert_eq!(
        (written.reported, written.desired),
        (Some(Version(2)), None)
    );
    let desired = Delete {
        shadow: lamp.clone(),
        reported: None,
        desired: Some(ExpectedVersion::Any),
        other_version: None,
        time: None,
    };
    delete_one(&store, desired).await.unwrap();
    let held = write_one(&store, holding(3, 2, 1)).await;
    assert_eq!(held, rejected(Version(1), None));
    write_one(&store, holding(3, 2, 0)).await.unwrap();
}

pub async fn leaf_times_are_stored_with_the_document<P: ShadowStore>(store: P) {
    let lamp = shadow("lamp");
    let mut timed = whole(&lamp, 1, 0);
    let times = LeafTimes::all(
        &number(1),
        Timestamp::from_nanoseconds(1_600_000_000_123_456_000),
    );
    if let Some(reported) = &mut timed.reported {
        reported.times = Some(times.clone());
    }
    write_one(&store, timed).await.unwrap();
    let found = read_one(&store, &lamp, DocumentSet::Both).await.unwrap();
    assert_eq!(found.reported.unwrap().times, Some(times));
    let desired = found.desired.unwrap();
    assert_eq!(desired.times, None);
    assert_eq!(desired.leaf_times(), LeafTimes::all(&number(1), NOW));
}

pub async fn times_alone_are_written_without_a_new_version<P: ShadowStore>(store: P) {
    let lamp = shadow("lamp");
    let with_times = |n: i64, expected: i64, expected_times: i64, times_only: bool| {
        let mut write = whole(&lamp, n, expected);
        for part in [&mut write.reported, &mut write.desired] {
            let part = part.as_mut().unwrap();
            let time = Timestamp::from_nanoseconds(i128::from(n) * 1_000_000);
            part.times = Some(LeafTimes::all(&number(n), time));
            (part.expected_times, part.times_only) = (expected_times, times_only);
        }
        write
    };
    write_one(&store, with_times(1, 0, 0, false)).await.unwrap();
    let before = read_one(&store, &lamp, DocumentSet::Both).await.unwrap();
    let conflict = Err(StoreError::Conflict {
        expected: Version(1),
        actual: Some(Version(1)),
    });
    for (expected_times, n) in [(0, 2), (1, 3)] {
        let written = write_one(&store, with_times(n, 1, expected_times, true)).await;
        assert_eq!(written, Ok(Written::default()));
        let held = read_one(&store, &lamp, DocumentSet::Both).await.unwrap();
        let (held, before) = (held.reported.unwrap(), before.reported.clone().unwrap());
        assert_eq!(held.times_version, expected_times + 1);
        assert_ne!(held.times, before.times);
        let only_times = StoredDocument {
            times: before.times.clone(),
            times_version: 0,
            ..held
        };
        assert_eq!(only_times, before);
        // Other writers read before.
        for times_only in [true, false] {
            let write = with_times(9, 1, expected_times, times_only);
            assert_eq!(write_one(&store, write).await, conflict);
        }
        let late = delete(
            &lamp,
            ExpectedVersion::Unchanged(Version(1), expected_times),
        );
        let deleted = delete_one(&store, late).await;
        assert_eq!(deleted.map(|()| Written::default()), conflict);
    }
    write_one(&store, with_times(4, 1, 2, false)).await.unwrap();
    let held = read_one(&store, &lamp, DocumentSet::Both).await.unwrap();
    let held = held.reported.unwrap();
    assert_eq!((held.version, held.times_version), (Version(2), 0));
    let exact = ExpectedVersion::unchanged(&held);
    delete_one(&store, delete(&lamp, exact)).await.unwrap();
}
