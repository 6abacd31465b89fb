//! Calls of each operation, counted at the endpoint.

use antumbra_service::shadows::{
    Delete, DocumentSet, ExpectedVersion, Layout, Read, ReadConsistency, ShadowStore, Shadows,
    Update, Version, Write,
};
use antumbra_service::store::ErrorClass;
use antumbra_testkit::dynamodb::Call;
use antumbra_testkit::sample::{
    delete, delete_one, document, new, read_one, report_of, shadow, whole, write, write_one,
};
use serde_json::{Value, json};

use crate::store::shadows;

fn reads(ids: impl IntoIterator<Item = usize>, parts: DocumentSet) -> Vec<Read> {
    let ids = ids.into_iter();
    ids.map(|id| Read {
        shadow: shadow(&format!("lamp-{id}")),
        parts,
    })
    .collect()
}

/// Keys and consistency of each BatchGetItem.
fn batches(calls: &[Call], table: &str) -> Vec<(usize, bool)> {
    let mut batches: Vec<_> = calls
        .iter()
        .map(|call| {
            assert_eq!(call.operation, "BatchGetItem");
            let requested = &call.body["RequestItems"][table];
            let keys = requested["Keys"].as_array().unwrap();
            (keys.len(), requested["ConsistentRead"] == json!(true))
        })
        .collect();
    batches.sort_unstable();
    batches
}

#[tokio::test]
async fn both_documents_are_read_in_one_call() {
    for (layout, keys) in [(Layout::Separate, 2), (Layout::Combined, 1)] {
        let store = shadows(layout).await;
        let read = read_one(&*store, &shadow("lamp"), DocumentSet::Both).await;
        assert!(read.is_err());
        let calls = store.endpoint.take_calls();
        assert_eq!(batches(&calls, &store.table), [(keys, true)]);
    }
}

#[tokio::test]
async fn reads_are_consistent_on_request() {
    let store = shadows(Layout::Separate).await;
    for (consistency, consistent) in [
        (ReadConsistency::Eventual, false),
        (ReadConsistency::Strong, true),
        (ReadConsistency::Snapshot, true),
    ] {
        store
            .read_many(&reads([1], DocumentSet::Reported), consistency)
            .await;
        let calls = store.endpoint.take_calls();
        assert_eq!(batches(&calls, &store.table), [(1, consistent)]);
    }
}

#[tokio::test]
async fn many_keys_are_read_a_hundred_at_a_time() {
    let store = shadows(Layout::Separate).await;
    let requested = reads(0..125, DocumentSet::Both);
    store.read_many(&requested, ReadConsistency::Strong).await;
    let calls = store.endpoint.take_calls();
    let expected = [(50, true), (100, true), (100, true)];
    assert_eq!(batches(&calls, &store.table), expected);

    store.read_many(&requested, ReadConsistency::Snapshot).await;
    let calls = store.endpoint.take_calls();
    let mut sizes: Vec<usize> = calls
        .iter()
        .map(|call| {
            assert_eq!(call.operation, "TransactGetItems");
            call.body["TransactItems"].as_array().unwrap().len()
        })
        .collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [50, 100, 100]);
}

#[tokio::test]
async fn duplicate_keys_are_requested_once() {
    let store = shadows(Layout::Separate).await;
    let mut requested = reads([1, 1, 2, 1], DocumentSet::Both);
    requested.extend(reads([1, 3], DocumentSet::Reported));
    store.read_many(&requested, ReadConsistency::Strong).await;
    let calls = store.endpoint.take_calls();
    assert_eq!(batches(&calls, &store.table), [(5, true)]);
}

#[tokio::test]
async fn a_snapshot_of_one_item_needs_no_transaction() {
    let store = shadows(Layout::Combined).await;
    let requested = reads([1, 2], DocumentSet::Both);
    store.read_many(&requested, ReadConsistency::Snapshot).await;
    let calls = store.endpoint.take_calls();
    assert_eq!(batches(&calls, &store.table), [(2, true)]);
}

#[tokio::test]
async fn one_document_is_one_put_and_two_are_one_transaction() {
    let store = shadows(Layout::Separate).await;
    let lamp = shadow("lamp");
    let reported = report_of(&lamp, 1, 0);
    write_one(&*store, reported).await.unwrap();
    assert_eq!(store.operations(), ["PutItem"]);
    write_one(&*store, whole(&shadow("other"), 1, 0))
        .await
        .unwrap();
    assert_eq!(store.operations(), ["TransactWriteItems"]);

    let reported = Delete {
        shadow: lamp.clone(),
        reported: Some(ExpectedVersion::Version(Version(1))),
        desired: None,
        other_version: None,
        time: None,
    };
    delete_one(&*store, reported).await.unwrap();
    assert_eq!(store.operations(), ["UpdateItem"]);
    let both = delete(&shadow("other"), ExpectedVersion::Any);
    delete_one(&*store, both).await.unwrap();
    assert_eq!(store.operations(), ["TransactWriteItems"]);
}

/// The version of a shadow is that of both documents: if the other one is created meanwhile, nothing is deleted.
#[tokio::test]
async fn a_delete_with_a_version_also_holds_the_document_that_does_not_exist() {
    let store = shadows(Layout::Separate).await;
    let lamp = shadow("lamp");
    let all = Shadows::new((*store).clone());
    for (version, operation) in [
        (Some(Version(1)), "TransactWriteItems"),
        (None, "UpdateItem"),
    ] {
        let written = all.report(&lamp, &serde_json::json!({"n": 1})).await;
        assert!(written.unwrap().written);
        store.operations();
        all.delete_shadow(&lamp, version, None, None).await.unwrap();
        assert_eq!(store.operations().last().unwrap(), operation);
    }
}

#[tokio::test]
async fn a_combined_item_is_one_put() {
    let store = shadows(Layout::Combined).await;
    let lamp = shadow("lamp");
    write_one(&*store, whole(&lamp, 1, 0)).await.unwrap();
    delete_one(&*store, delete(&lamp, ExpectedVersion::Version(Version(1))))
        .await
        .unwrap();
    let operations = store.operations();
    assert_eq!(operations, ["PutItem", "UpdateItem"]);
}

#[tokio::test]
async fn keys_follow_the_layout() {
    let store = shadows(Layout::Separate).await;
    let lamp = shadow("My House#Basement");
    let reported = Write {
        reported: new(document(r#"{"a":[1.50,true,null]}"#), 0),
        ..write(&lamp)
    };
    write_one(&*store, reported).await.unwrap();
    let [call] = &store.endpoint.take_calls()[..] else {
        panic!()
    };
    let expected = json!({
        "PK": {"S": "DS#My House#Basement"},
        "SK": {"S": "DSR#main"},
        "fleetShard": {"S": "SHADOWS#9"},
        "fleetKey": {"S": "My House#Basement\u{1}main"},
        "version": {"N": "1"},
        "timestamp": {"N": "1700000000123456789"},
        "reported": {"M": {"a": {"L": [{"N": "1.5"}, {"BOOL": true}, {"NULL": true}]}}},
    });
    assert_eq!(call.body["Item"], expected);
    assert_eq!(
        call.body["ConditionExpression"],
        "attribute_not_exists(#PK)"
    );
    assert_eq!(
        call.body["ReturnValuesOnConditionCheckFailure"],
        json!("ALL_OLD")
    );
    let sort_keys = |calls: Vec<Call>| -> Vec<Value> {
        let items = calls[0].body["TransactItems"].as_array();
        let items = items.into_iter().flatten();
        items
            .map(|item| item["Put"]["Item"]["SK"]["S"].clone())
            .collect()
    };
    write_one(&*store, whole(&shadow("other"), 1, 0))
        .await
        .unwrap();
    let calls = store.endpoint.take_calls();
    assert_eq!(sort_keys(calls), [json!("DSR#main"), json!("DSD#main")]);

    let store = shadows(Layout::Combined).await;
    write_one(&*store, whole(&lamp, 1, 0)).await.unwrap();
    let call = &store.endpoint.take_calls()[0];
    assert_eq!(call.body["Item"]["SK"], json!({"S": "DSC#main"}));
    assert!(call.body["Item"]["reported"]["M"].is_object());
    assert!(call.body["Item"]["desired"]["M"].is_object());
}

#[tokio::test]
async fn invalid_writes_make_no_call() {
    let store = shadows(Layout::Separate).await;
    let lamp = shadow("lamp");
    let large = document(&format!(r#"{{"pad":"{}"}}"#, "x".repeat(401 * 1024)));
    let invalid = [
        write(&lamp),
        whole(&lamp, 1, -1),
        Write {
            desired: new(large, 0),
            ..whole(&lamp, 1, 0)
        },
    ];
    let results = store.write_many(&invalid).await;
    let classes: Vec<ErrorClass> = results
        .into_iter()
        .map(|result| result.unwrap_err().class())
        .collect();
    use ErrorClass::{Invalid, TooLarge};
    assert_eq!(classes, [Invalid, Invalid, TooLarge]);
    assert!(store.endpoint.take_calls().is_empty());
}

#[tokio::test]
async fn no_more_writes_run_at_once_than_configured() {
    let store = shadows(Layout::Separate).await;
    let writes: Vec<Write> = (0..48)
        .map(|n| whole(&shadow(&format!("lamp-{n}")), n, 0))
        .collect();
    // No response is sent before 16 requests have arrived, so fewer at a time would never complete.
    store.endpoint.hold_until(16);
    assert!(store.write_many(&writes).await.iter().all(Result::is_ok));
    assert_eq!(store.endpoint.most_at_once(), 16);

    // One shadow is never written twice at once.
    let writes: Vec<Write> = (0..6).map(|n| whole(&shadow("lamp"), n, n)).collect();
    store.endpoint.hold_until(0);
    assert!(store.write_many(&writes).await.iter().all(Result::is_ok));
    assert_eq!(store.endpoint.most_at_once(), 1);
}

#[tokio::test]
async fn a_report_is_one_read_and_at_most_one_write() {
    let store = shadows(Layout::Separate).await;
    let shadows = Shadows::new((*store).clone());
    let lamp = shadow("lamp");
    let operations = || store.operations();

    shadows.report(&lamp, &json!({"led": "off"})).await.unwrap();
    assert_eq!(operations(), ["BatchGetItem", "PutItem"]);
    shadows.report(&lamp, &json!({"led": "off"})).await.unwrap();
    assert_eq!(operations(), ["BatchGetItem"], "unchanged");
    shadows.desire(&lamp, &json!({"led": "on"})).await.unwrap();
    operations();
    shadows.report(&lamp, &json!({"watt": 4})).await.unwrap();
    assert_eq!(operations(), ["BatchGetItem", "PutItem"]);
    let updated = shadows.report(&lamp, &json!({"led": "on"})).await.unwrap();
    assert_eq!(updated.acknowledged.len(), 1);
    assert_eq!(operations(), ["BatchGetItem", "TransactWriteItems"]);
}

/// The record of an acknowledgement is part of the write that removes the values, and of no later one.
#[tokio::test]
async fn an_acknowledgement_is_recorded_in_the_same_write() {
    for (layout, item) in [
        (Layout::Separate, "DSD#main"),
        (Layout::Combined, "DSC#main"),
    ] {
        let store = shadows(layout).await;
        let shadows = Shadows::new((*store).clone());
        let lamp = shadow("lamp");
        let recorded = || async {
            let key = |text: &str| aws_sdk_dynamodb::types::AttributeValue::S(text.to_owned());
            let read = store.client.get_item().table_name(&store.table);
            let read = read.key("PK", key("DS#lamp")).key("SK", key(item));
            let item = read.send().await.unwrap().item.unwrap();
            item.get("acknowledged")
                .map(|text| text.as_s().unwrap().clone())
        };
        let desired = json!({"led": "on", "fan": 2, "mode": "eco"});
        shadows.desire(&lamp, &desired).await.unwrap();
        assert_eq!(recorded().await, None);
        store.endpoint.take_calls();

        shadows.report(&lamp, &json!({"led": "on"})).await.unwrap();
        let writes = match layout {
            Layout::Separate => ["BatchGetItem", "TransactWriteItems"],
            Layout::Combined => ["BatchGetItem", "PutItem"],
        };
        assert_eq!(store.operations(), writes);
        assert_eq!(recorded().await.as_deref(), Some("2"), "{layout:?}");

        // A withdrawal and an acknowledgement in one write are told apart.
        let patch = document(r#"{"mode":null}"#);
        let both = Update::report(lamp.clone(), document(r#"{"fan":2}"#)).and_desire(patch);
        shadows.update(both).await.unwrap();
        assert_eq!(recorded().await.as_deref(), Some("3:1+1"), "{layout:?}");

        shadows.desire(&lamp, &json!({"led": "off"})).await.unwrap();
        assert_eq!(recorded().await, None, "{layout:?}");
        shadows.report(&lamp, &json!({"led": "off"})).await.unwrap();
        assert_eq!(recorded().await.as_deref(), Some("5"), "{layout:?}");
        shadows.desire(&lamp, &json!({"led": "on"})).await.unwrap();
        shadows.desire(&lamp, &json!({"led": null})).await.unwrap();
        assert_eq!(recorded().await, None, "{layout:?}");
    }
}

#[tokio::test]
async fn a_delete_leaves_the_version_for_two_days_and_nothing_else() {
    let store = shadows(Layout::Combined).await;
    let lamp = shadow("lamp");
    write_one(&*store, whole(&lamp, 1, 0)).await.unwrap();
    delete_one(&*store, delete(&lamp, ExpectedVersion::Any))
        .await
        .unwrap();
    let left = store.client.scan().table_name(&store.table).send().await;
    let left = left.unwrap().items.unwrap().remove(0);
    let mut attributes: Vec<_> = left
        .iter()
        .map(|(name, value)| {
            let text = value.as_s().or(value.as_n()).unwrap();
            (name.as_str(), text.as_str())
        })
        .collect();
    attributes.sort_unstable();
    let expected = [
        ("PK", "DS#lamp"),
        ("SK", "DSC#main"),
        ("deletedAt", "1700000000123456788"),
        ("previousTimestamp", "1700000000123456789"),
        ("timestamp", "1700000000123456788"),
        ("ttl", "1700172801"),
        ("version", "1"),
    ];
    assert_eq!(attributes, expected);

    // Only a create in its place costs a second call.
    store.endpoint.take_calls();
    write_one(&*store, whole(&lamp, 2, 0)).await.unwrap();
    assert_eq!(store.operations(), ["PutItem", "PutItem"]);
    // Deleting a missing document stores nothing.
    let absent = delete(&shadow("absent"), ExpectedVersion::Any);
    delete_one(&*store, absent).await.unwrap();
    let left = store.client.scan().table_name(&store.table).send().await;
    assert_eq!(left.unwrap().count, 1);
}
