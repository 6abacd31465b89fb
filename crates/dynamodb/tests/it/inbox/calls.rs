//! Calls of each operation, counted at the endpoint.

use std::time::Duration;

use antumbra_dynamodb::SOURCE_SHARDS;
use antumbra_service::inbox::{
    HourlySourceTracker, ListRequest, MessageDeleter, MessageIndex, MessageReader, MessageWriter,
    Order, SourceTracker, Sources, contact_hour, list, span,
};

use super::{NOON, at, id, message, source};
use crate::store::inbox;

#[tokio::test]
async fn every_operation_is_one_call_and_a_span_is_two() {
    let inbox = &inbox().await;
    let (inbox, thing) = (inbox, source("testThing"));
    let check = |expected: &[&str]| assert_eq!(inbox.operations(), expected);

    for name in ["1", "2", "3"] {
        inbox
            .store(&message("testThing", name, "{}"))
            .await
            .unwrap();
        check(&["PutItem"]);
    }
    inbox.store(&message("testThing", "1", "{}")).await.unwrap();
    check(&["PutItem"]);
    inbox.get(&thing, &id("1")).await.unwrap();
    check(&["GetItem"]);
    inbox.next(&thing, &id("1")).await.unwrap();
    check(&["Query"]);
    inbox.prev(&thing, &id("1")).await.unwrap();
    check(&["Query"]);
    span(&**inbox, &thing).await.unwrap();
    check(&["Query", "Query"]);
    let request = ListRequest {
        from: None,
        to: None,
        order: Order::OldestFirst,
        limit: 2,
        cursor: None,
    };
    list(&**inbox, &thing, &request).await.unwrap();
    check(&["Query"]);
    inbox.get_all(&thing, &[id("1"), id("2")]).await.unwrap();
    check(&["BatchGetItem"]);
    inbox.delete(&thing, &id("1"), at(NOON)).await.unwrap();
    check(&["UpdateItem"]);
    inbox.touch(&thing, at(NOON)).await.unwrap();
    check(&["PutItem"]);
    inbox.sources(10, None).await.unwrap();
    check(&["Query"; SOURCE_SHARDS as usize]);
}

#[tokio::test]
async fn every_read_is_consistent() {
    let inbox = &inbox().await;
    let (inbox, thing) = (inbox, source("testThing"));
    inbox.get(&thing, &id("1")).await.unwrap();
    inbox.get_all(&thing, &[id("1")]).await.unwrap();
    span(&**inbox, &thing).await.unwrap();
    inbox.sources(10, None).await.unwrap();
    for call in inbox.endpoint.take_calls() {
        let tables = call.body.pointer(&format!("/RequestItems/{}", inbox.table));
        let body = tables.unwrap_or(&call.body);
        assert_eq!(body["ConsistentRead"], true, "{call:?}");
    }
}

/// Two hundred tombstones before the only message cost nothing.
#[tokio::test]
async fn tombstones_are_not_read() {
    let inbox = &inbox().await;
    let (inbox, thing) = (inbox, source("testThing"));
    for number in 0..=200 {
        let name = format!("{number:03}");
        inbox
            .store(&message("testThing", &name, "{}"))
            .await
            .unwrap();
        if number < 200 {
            inbox.delete(&thing, &id(&name), at(NOON)).await.unwrap();
        }
    }
    inbox.endpoint.take_calls();
    assert_eq!(inbox.oldest(&thing).await.unwrap(), Some(id("200")));
    assert_eq!(inbox.next(&thing, &id("0")).await.unwrap(), Some(id("200")));
    let calls = inbox.endpoint.take_calls();
    assert_eq!(calls.len(), 2);
    for call in calls {
        // DynamoDB examines as many entries as the limit, and the index has no tombstones.
        assert_eq!(call.body["IndexName"], "Undeleted");
        assert_eq!(call.body["Limit"], 1);
    }
}

#[tokio::test]
async fn contact_is_recorded_once_an_hour() {
    let inbox = &inbox().await;
    let contacts = HourlySourceTracker::new((**inbox).clone());
    let calls = || inbox.operations().len();
    let minute = |minute: u64| {
        let hour = contact_hour(&source("a"), at("2026-01-31T12:30:00Z"));
        hour.after(Duration::from_secs(60 * minute))
    };
    for time in [0, 30, 59].map(minute) {
        contacts.touch(&source("a"), time).await.unwrap();
    }
    assert_eq!(calls(), 1);
    contacts.touch(&source("a"), minute(60)).await.unwrap();
    contacts.touch(&source("b"), minute(60)).await.unwrap();
    assert_eq!(calls(), 2);
    // An earlier contact changes nothing.
    contacts.touch(&source("a"), minute(30)).await.unwrap();
    assert_eq!(calls(), 0);
}
