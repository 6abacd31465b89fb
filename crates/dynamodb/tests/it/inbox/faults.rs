//! Failed calls: their errors, and that a retry is harmless.

use antumbra_service::inbox::{
    HourlySourceTracker, MessageDeleter, MessageIndex, MessageReader, MessageWriter, SourceTracker,
    Sources, StoreMessageError, Stored,
};
use antumbra_service::store::StoreError;
use antumbra_testkit::dynamodb::Reply;
use aws_sdk_dynamodb::types::AttributeValue;

use super::{NOON, at, id, message, source};
use crate::store::inbox;

fn throttled() -> Reply {
    Reply::fail(400, "ProvisionedThroughputExceededException")
}

#[tokio::test]
async fn throttling_is_retryable_for_every_operation() {
    let inbox = &inbox().await;
    let (inbox, thing, first) = (inbox, source("a"), id("1"));
    inbox.endpoint.script(|_| throttled());
    let stored = inbox.store(&message("a", "1", "{}")).await;
    assert_eq!(stored, Err(StoreMessageError::Store(StoreError::Throttled)));
    let results = [
        inbox.touch(&thing, at(NOON)).await,
        inbox.get(&thing, &first).await.map(drop),
        inbox
            .get_all(&thing, std::slice::from_ref(&first))
            .await
            .map(drop),
        inbox.next(&thing, &first).await.map(drop),
        inbox.delete(&thing, &first, at(NOON)).await,
        inbox.sources(1, None).await.map(drop),
    ];
    for result in results {
        assert_eq!(result, Err(StoreError::Throttled));
    }
}

#[tokio::test]
async fn a_full_source_has_its_own_error() {
    let inbox = &inbox().await;
    let full = Reply::fail(400, "ItemCollectionSizeLimitExceededException");
    inbox.endpoint.script_next("PutItem", [full]);
    let stored = inbox.store(&message("a", "1", "{}")).await;
    assert_eq!(stored, Err(StoreMessageError::SourceFull));
    assert_eq!(inbox.store(&message("a", "1", "{}")).await, Ok(Stored::New));
}

/// The SDK repeats a call whose response was lost; the second attempt finds the result of the first.
#[tokio::test]
async fn a_lost_response_changes_nothing() {
    let inbox = &inbox().await;
    let (inbox, thing) = (inbox, source("a"));
    let kept = message("a", "1", r#"{"n":1}"#);
    inbox.lose_response("PutItem");
    inbox.store(&kept).await.unwrap();
    assert_eq!(inbox.operations(), ["PutItem", "PutItem"]);
    assert_eq!(
        inbox.get(&thing, &kept.id).await.unwrap(),
        Some(kept.clone())
    );
    inbox.lose_response("UpdateItem");
    inbox.delete(&thing, &kept.id, at(NOON)).await.unwrap();
    assert_eq!(inbox.get(&thing, &kept.id).await.unwrap(), None);
    inbox.lose_response("PutItem");
    inbox.touch(&thing, at(NOON)).await.unwrap();
    assert_eq!(inbox.sources(10, None).await.unwrap().rows.len(), 1);
}

#[tokio::test]
async fn a_failed_contact_is_recorded_the_next_time() {
    let inbox = &inbox().await;
    let contacts = HourlySourceTracker::new((**inbox).clone());
    inbox.endpoint.script(|_| throttled());
    assert!(contacts.touch(&source("a"), at(NOON)).await.is_err());
    inbox.endpoint.script(|_| Reply::Pass);
    contacts.touch(&source("a"), at(NOON)).await.unwrap();
    assert_eq!(inbox.sources(10, None).await.unwrap().rows.len(), 1);
}

#[tokio::test]
async fn unprocessed_keys_are_requested_again() {
    let inbox = &inbox().await;
    let (inbox, thing, table) = (inbox, source("a"), inbox.table.clone());
    for name in ["1", "2"] {
        inbox.store(&message("a", name, "{}")).await.unwrap();
    }
    let key = serde_json::json!({"uuid": {"S": "a"}, "messageId": {"S": "2"}});
    let left = serde_json::json!({
        "Responses": {},
        "UnprocessedKeys": {&table: {"Keys": [key.clone(), {"uuid": {"S": "a"}, "messageId": {"S": "1"}}]}},
    });
    inbox
        .endpoint
        .script_next("BatchGetItem", [Reply::Respond(200, left.clone())]);
    let found = inbox.get_all(&thing, &[id("2"), id("1")]).await.unwrap();
    assert_eq!(found.len(), 2);
    inbox
        .endpoint
        .script(move |_| Reply::Respond(200, left.clone()));
    let found = inbox.get_all(&thing, &[id("2"), id("1")]).await;
    assert!(
        matches!(found, Err(StoreError::Unavailable(_))),
        "{found:?}"
    );
}

/// A foreign item is an error where it is requested, and hides no other item.
#[tokio::test]
async fn foreign_items_fail_only_their_own_requests() {
    let inbox = &inbox().await;
    let (inbox, thing) = (inbox, source("a"));
    let text = |text: &str| AttributeValue::S(text.to_owned());
    for (name, undeleted) in [
        ("0/odd", Some("0/odd")),
        ("1-no-body", Some("1-no-body")),
        ("2", None),
    ] {
        let mut put = inbox.client.put_item().table_name(&inbox.table);
        put = put.item("uuid", text("a")).item("messageId", text(name));
        if let Some(undeleted) = undeleted {
            put = put.item("undeletedId", text(undeleted));
        }
        put.send().await.unwrap();
    }
    inbox.store(&message("a", "3", "{}")).await.unwrap();
    assert_eq!(inbox.oldest(&thing).await.unwrap(), Some(id("1-no-body")));
    let error = inbox.get(&thing, &id("1-no-body")).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "unavailable: a stored item's body is missing"
    );
    assert_eq!(inbox.get(&thing, &id("2")).await.unwrap(), None);
    assert_eq!(inbox.newest(&thing).await.unwrap(), Some(id("3")));
}
