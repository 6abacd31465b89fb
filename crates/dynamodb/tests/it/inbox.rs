//! The inbox: messages are stored once, returned in order, and stay deleted.

mod bodies;
mod calls;
mod faults;
mod model;
mod sources;

use antumbra_service::inbox::{
    Body, InboxMessage, MessageDeleter, MessageId, MessageIndex, MessageReader, MessageWriter as _,
    Source, Stored, span,
};
use antumbra_shadow::Timestamp;

use crate::store::inbox;

fn source(name: &str) -> Source {
    Source::new(name).unwrap()
}

fn id(name: &str) -> MessageId {
    MessageId::new(name).unwrap()
}

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

const NOON: &str = "2026-01-31T12:00:00Z";

fn message(of: &str, name: &str, body: &str) -> InboxMessage {
    InboxMessage {
        source: source(of),
        id: id(name),
        body: Body::parse(body).unwrap(),
        received_at: at(NOON),
        expires_at: None,
    }
}

#[tokio::test]
async fn a_message_is_stored_once_and_stays_deleted() {
    let inbox = &inbox().await;
    let (thing, first) = (
        source("testThing"),
        message("testThing", "1-1-a", r#"{"n":1}"#),
    );
    assert_eq!(inbox.store(&first).await, Ok(Stored::New));
    assert_eq!(
        inbox.get(&thing, &first.id).await.unwrap(),
        Some(first.clone())
    );

    let again = message("testThing", "1-1-a", r#"{"n":"another"}"#);
    assert_eq!(inbox.store(&again).await, Ok(Stored::Known));
    assert_eq!(
        inbox.get(&thing, &first.id).await.unwrap(),
        Some(first.clone())
    );

    inbox.delete(&thing, &first.id, at(NOON)).await.unwrap();
    for _ in 0..2 {
        assert_eq!(inbox.get(&thing, &first.id).await.unwrap(), None);
        assert_eq!(
            inbox
                .get_all(&thing, std::slice::from_ref(&first.id))
                .await
                .unwrap(),
            []
        );
        assert_eq!(span(&**inbox, &thing).await.unwrap(), None);
        // A redelivery does not restore it.
        assert_eq!(inbox.store(&first).await, Ok(Stored::Known));
    }
}

#[tokio::test]
async fn a_tombstone_outlives_every_redelivery_and_has_no_body() {
    let inbox = &inbox().await;
    let (inbox, thing) = (inbox, source("testThing"));
    let mut kept = message("testThing", "1-1-a", r#"{"secret":72.50}"#);
    kept.expires_at = Some(at("2026-02-01T00:00:00Z"));
    inbox.store(&kept).await.unwrap();
    inbox.delete(&thing, &kept.id, at(NOON)).await.unwrap();
    // A second delete does not extend its expiry.
    inbox
        .delete(&thing, &kept.id, at("2026-02-14T12:00:00Z"))
        .await
        .unwrap();
    let items = inbox.items().await;
    let names: std::collections::BTreeSet<&str> = items[0].keys().map(String::as_str).collect();
    assert_eq!(
        names,
        ["deletedAt", "messageId", "receivedAt", "ttl", "uuid"].into()
    );
    // A queue can deliver a message for 14 days after it was sent.
    let ttl: i64 = items[0]["ttl"].as_n().unwrap().parse().unwrap();
    assert_eq!(
        ttl,
        (at("2026-02-15T12:00:00Z").nanoseconds() / 1_000_000_000) as i64
    );
    assert_eq!(items[0]["deletedAt"].as_s().unwrap(), NOON);
}

#[tokio::test]
async fn deleting_an_unknown_message_stores_nothing() {
    let inbox = &inbox().await;
    let thing = source("testThing");
    for name in ["1-1-a", "anything", &"x".repeat(1024)] {
        inbox.delete(&thing, &id(name), at(NOON)).await.unwrap();
    }
    assert_eq!(inbox.items().await, []);
}

#[tokio::test]
async fn any_text_is_a_valid_bound() {
    let inbox = &inbox().await;
    let thing = source("testThing");
    for name in ["10-1-a", "20-1-b", "30-1-c"] {
        inbox
            .store(&message("testThing", name, "{}"))
            .await
            .unwrap();
    }
    inbox
        .store(&message("other", "15-1-x", "{}"))
        .await
        .unwrap();
    let long = "2".repeat(1024);
    for (from, next, prev) in [
        ("0", Some("10-1-a"), None),
        ("10-1-a", Some("20-1-b"), None),
        ("15", Some("20-1-b"), Some("10-1-a")),
        ("20-1-b", Some("30-1-c"), Some("10-1-a")),
        (&long, Some("30-1-c"), Some("20-1-b")),
        ("30-1-c", None, Some("20-1-b")),
        ("zz", None, Some("30-1-c")),
    ] {
        let found = inbox.next(&thing, &id(from)).await.unwrap();
        assert_eq!(found.as_ref().map(MessageId::as_str), next, "behind {from}");
        let found = inbox.prev(&thing, &id(from)).await.unwrap();
        assert_eq!(found.as_ref().map(MessageId::as_str), prev, "before {from}");
    }
    let found = span(&**inbox, &thing).await.unwrap().unwrap();
    assert_eq!((found.oldest, found.newest), (id("10-1-a"), id("30-1-c")));
}
