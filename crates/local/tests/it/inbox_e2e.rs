//! From a queue to the inbox and its notifications: the SQS SDK sends, the queue invokes message-ingest, the
//! table's stream invokes the listener, and the listener publishes.

use std::time::Duration;

use antumbra_dynamodb::{DynamoDbInbox, MESSAGES};
use antumbra_local::stack::Options;
use antumbra_service::clock::{Clock, SystemClock};
use antumbra_service::inbox::{MessageDeleter, MessageReader, Source, Sources, span};

use crate::support::{Home, registrations};

/// The shipped registration.
const NOTIFICATIONS: &str = include_str!("../../../../registrations/inbox-notifications.json");

fn text(thing: &str, epoch: u32) -> String {
    format!(r#"{{ "thingName": "{thing}", "epochTime": "{epoch}", "tempSensor1F": 72.50 }}"#)
}

/// Deleted messages and records of sources are not notified.
#[tokio::test]
async fn a_message_is_stored_and_notified() {
    let home = Home::start(Options {
        registrations: registrations([NOTIFICATIONS]),
        ..Options::default()
    })
    .await;
    let inbox = DynamoDbInbox::connect(&home.database(), MESSAGES.name);
    let mut device = home.device("dashboard").await;
    device.subscribe("notification/#").await;
    let before = SystemClock.now();
    let source = Source::new("testThing").unwrap();
    for epoch in [1564669331, 1564669332] {
        let queue_id = home
            .send("antumbra-inbound", &text("testThing", epoch))
            .await;
        let notified = device.next().await;
        assert_eq!(notified.topic, "notification/testThing");
        let payload = String::from_utf8(notified.payload.to_vec()).unwrap();
        let stored = span(&inbox, &source).await.unwrap().unwrap();
        assert_eq!(stored.oldest, stored.newest);
        let id = stored.oldest;
        assert_eq!(
            payload,
            format!(r#"{{"uuid":"testThing","messageId":"{id}"}}"#)
        );
        let (begin, end) = (format!("{epoch}-"), queue_id);
        assert!(
            id.as_str().starts_with(&begin) && id.as_str().ends_with(&end),
            "{id}"
        );
        let found = inbox.get(&source, &id).await.unwrap().unwrap();
        assert_eq!(
            found.body.as_json(),
            format!(r#"{{"epochTime":"{epoch}","tempSensor1F":72.50,"thingName":"testThing"}}"#)
        );
        inbox.delete(&source, &id, SystemClock.now()).await.unwrap();
    }
    let sources = inbox.sources(10, None).await.unwrap().rows;
    assert_eq!(sources.len(), 1);
    assert_eq!(sources[0].source, source);
    let hour = Duration::from_secs(60 * 60);
    assert!(sources[0].last_contact.after(hour) > before);
    device.leave().await;
    home.stop().await;
}
