//! Listings of the documents of a device, in a table with foreign items.

use antumbra_dynamodb::{DynamoDbShadows, MAIN, ShadowTableConfig};
use antumbra_service::shadows::{DocumentSummary, Layout, ShadowStore as _, State, StoreError};
use antumbra_testkit::all_pages;
use antumbra_testkit::dynamodb::{Reply, TestTable};
use antumbra_testkit::sample::{named, shadow, whole, write_one};
use serde_json::json;

use crate::store::{Store, shadows};

async fn all(store: &Store<DynamoDbShadows>, limit: usize) -> Vec<DocumentSummary> {
    let next = async |cursor: Option<&_>| store.list("lamp", limit, cursor).await.unwrap();
    all_pages(limit.max(2), next).await
}

#[tokio::test]
async fn documents_are_not_transferred() {
    let store = shadows(Layout::Separate).await;
    write_one(&*store, whole(&shadow("lamp"), 1, 0))
        .await
        .unwrap();
    store.endpoint.take_calls();
    all(&store, 10).await;
    let [call] = &store.endpoint.take_calls()[..] else {
        panic!("one call")
    };
    let names = call.body["ExpressionAttributeNames"].as_object().unwrap();
    let projected = call.body["ProjectionExpression"].as_str().unwrap();
    let mut projected: Vec<&str> = projected
        .split(", ")
        .map(|name| names[name].as_str().unwrap())
        .collect();
    projected.sort_unstable();
    let expected = ["PK", "SK", "clientToken", "timestamp", "version"];
    assert_eq!(projected, expected);
}

#[tokio::test]
async fn foreign_items_are_not_listed() {
    for layout in [Layout::Separate, Layout::Combined] {
        let store = shadows(layout).await;
        let other = match layout {
            Layout::Separate => "DSC#main",
            Layout::Combined => "DSR#main",
        };
        for (partition, sort) in [
            ("SENSOR#1", "STATE"),
            ("DS#lamp", other),
            ("DS#lamp", "DSR$"),
            ("DS#lamp", "DSM#main"),
            ("DS#lamp", "META"),
            ("DS#lamp", "DSR#"),
            ("DS#", "DSR#main"),
            ("DSR#main", "DS#lamp"),
            // Under our keys, but not written by us.
            ("DS#lamp", "DSR#alien"),
            ("DS#lamp", "DSC#alien"),
        ] {
            store.put(&[("PK", partition), ("SK", sort)]).await;
        }
        for name in ["a", "b"] {
            let write = whole(&named("lamp", name), 1, 0);
            write_one(&*store, write).await.unwrap();
        }
        for limit in [1, 3, 100] {
            let mut found: Vec<_> = all(&store, limit)
                .await
                .into_iter()
                .map(|listed| (listed.shadow.name().to_owned(), listed.state))
                .collect();
            found.sort();
            let expected = ["a", "b"].into_iter().flat_map(|name| {
                [State::Reported, State::Desired].map(|state| (name.to_owned(), state))
            });
            assert_eq!(found, expected.collect::<Vec<_>>(), "by {limit}");
        }
    }
}

/// With few documents among many items of other programs, a page costs a few calls, not one per item.
#[tokio::test]
async fn few_documents_among_many_items_cost_few_calls() {
    let store = shadows(Layout::Separate).await;
    for n in 0..60 {
        let sort = format!("DSR#0{n:02}");
        store.put(&[("PK", "DS#lamp"), ("SK", &sort)]).await;
    }
    for n in 0..4 {
        let write = whole(&named("lamp", &format!("name-{n}")), 1, 0);
        write_one(&*store, write).await.unwrap();
    }
    store.endpoint.take_calls();
    assert_eq!(all(&store, 8).await.len(), 8);
    let calls = store.endpoint.take_calls().len();
    assert!((2..=5).contains(&calls), "{calls}");
}

#[tokio::test]
async fn a_page_that_stays_empty_has_a_cursor() {
    let store = shadows(Layout::Separate).await;
    let mut next = 0;
    store.endpoint.script(move |_| {
        next += 1;
        let last = json!({"PK": {"S": "DS#lamp"}, "SK": {"S": format!("DSR#{next}")}});
        let response =
            json!({"Items": [], "Count": 0, "ScannedCount": 9, "LastEvaluatedKey": last});
        Reply::Respond(200, response)
    });
    let page = store.list("lamp", 10, None).await.unwrap();
    assert!(page.rows.is_empty());
    let first = store.endpoint.take_calls();
    assert_eq!(first.len(), 8);
    let cursor = page.next.unwrap();
    let page = store.list("lamp", 10, Some(&cursor)).await;
    assert!(page.unwrap().next.is_some());
    let start = &store.endpoint.take_calls()[0].body["ExclusiveStartKey"];
    assert_eq!(start["SK"], json!({"S": "DSR#8"}));
}

#[tokio::test]
async fn a_cursor_of_another_table_or_layout_is_invalid() {
    let store = shadows(Layout::Separate).await;
    for n in 0..3 {
        let write = whole(&named("lamp", &format!("name-{n}")), 1, 0);
        write_one(&*store, write).await.unwrap();
    }
    let page = store.list("lamp", 2, None).await.unwrap();
    let cursor = page.next.unwrap();
    let other = TestTable::create(MAIN).await.name;
    for config in [
        ShadowTableConfig::new(&other),
        ShadowTableConfig::new(&store.table).layout(Layout::Combined),
    ] {
        let shadows = DynamoDbShadows::new(store.client.clone(), config);
        let listed = shadows.list("lamp", 2, Some(&cursor)).await;
        assert!(matches!(listed, Err(StoreError::Invalid(_))));
    }
}
