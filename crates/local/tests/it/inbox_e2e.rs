//! From a queue to the inbox and its notifications: the SQS SDK sends, the queue invokes message-ingest, the
//! table's stream invokes the listener, and the listener publishes.

use std::time::Duration;

use antumbra_dynamodb::{DynamoDbInbox, MESSAGES};
use antumbra_local::{clients::sdk_config, stack::Options};
use antumbra_service::clock::{Clock, SystemClock};
use antumbra_service::inbox::{MessageDeleter, MessageId, MessageReader, Source, Sources, span};
use serde_json::Value;

use crate::device::v4::Device;
use crate::support::{self, registrations};

/// The shipped registration.
const NOTIFICATIONS: &str = include_str!("../../../../registrations/inbox-notifications.json");

struct Home {
    services: support::Home,
    inbox: DynamoDbInbox,
    /// Subscribed to all notifications.
    device: Device,
}

impl Home {
    async fn start() -> Home {
        let services = support::Home::start(Options {
            registrations: registrations([NOTIFICATIONS]),
            ..Options::default()
        })
        .await;
        let database = sdk_config(services.stack.addresses().dynamodb);
        let mut device = services.device("dashboard").await;
        device.subscribe("notification/#").await;
        Home {
            inbox: DynamoDbInbox::connect(&database, MESSAGES.name),
            device,
            services,
        }
    }

    /// Sends a message and returns its id in the queue.
    async fn send(&self, body: &str) -> String {
        self.services.send("antumbra-inbound", body).await
    }

    async fn stop(self) {
        self.device.leave().await;
        self.services.stop().await;
    }
}

fn text(thing: &str, epoch: u32) -> String {
    format!(r#"{{ "thingName": "{thing}", "epochTime": "{epoch}", "tempSensor1F": 72.50 }}"#)
}

#[tokio::test]
async fn a_message_is_stored_and_notified() {
    let mut home = Home::start().await;
    let before = SystemClock.now();
    let queue_id = home.send(&text("testThing", 1564669331)).await;

    let notified = home.device.next().await;
    assert_eq!(notified.topic, "notification/testThing");
    let payload = String::from_utf8(notified.payload.to_vec()).unwrap();
    let value: Value = serde_json::from_str(&payload).unwrap();
    let id = value["messageId"].as_str().unwrap();
    assert_eq!(
        payload,
        format!(r#"{{"uuid":"testThing","messageId":"{id}"}}"#)
    );
    assert!(
        id.starts_with("1564669331-") && id.ends_with(&queue_id),
        "{id}"
    );

    let source = Source::new("testThing").unwrap();
    let found = home
        .inbox
        .get(&source, &MessageId::new(id).unwrap())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        found.body.as_json(),
        r#"{"epochTime":"1564669331","tempSensor1F":72.50,"thingName":"testThing"}"#
    );
    let sources = home.inbox.sources(10, None).await.unwrap().rows;
    assert_eq!(sources.len(), 1);
    assert_eq!(sources[0].source, source);
    let hour = Duration::from_secs(60 * 60);
    assert!(sources[0].last_contact.after(hour) > before);
    home.stop().await;
}

#[tokio::test]
async fn bad_messages_are_quarantined_and_good_ones_stored() {
    let mut home = Home::start().await;
    home.send("{ not JSON").await;
    home.send(&text("lamp", 1)).await;
    assert_eq!(home.device.next().await.topic, "notification/lamp");
    let rejected = home
        .services
        .received("antumbra-quarantine", "NotJson")
        .await;
    assert_eq!(rejected.body(), Some("{ not JSON"));
    let reason = &rejected.message_attributes().unwrap()["reason"];
    assert_eq!(reason.string_value(), Some("NotJson"));
    home.stop().await;
}

/// Deleted messages and records of sources are not notified.
#[tokio::test]
async fn only_new_messages_are_notified() {
    let mut home = Home::start().await;
    home.send(&text("lamp", 1)).await;
    home.device.next().await;
    let source = Source::new("lamp").unwrap();
    let only = span(&home.inbox, &source).await.unwrap().unwrap().oldest;
    home.inbox
        .delete(&source, &only, SystemClock.now())
        .await
        .unwrap();
    home.send(&text("lamp", 2)).await;
    let notified: Value = serde_json::from_str(&home.device.text().await).unwrap();
    assert!(
        notified["messageId"].as_str().unwrap().starts_with("2-"),
        "{notified}"
    );
    let left = span(&home.inbox, &source).await.unwrap().unwrap();
    assert_eq!(left.oldest, left.newest);
    home.stop().await;
}

#[tokio::test]
async fn every_message_of_a_burst_is_stored_and_notified() {
    let mut home = Home::start().await;
    for number in 0..40 {
        home.send(&text(&format!("thing-{}", number % 4), 1000 + number))
            .await;
    }
    let mut notified = std::collections::BTreeSet::new();
    while notified.len() < 40 {
        let value: Value = serde_json::from_str(&home.device.text().await).unwrap();
        let id = value["messageId"].as_str().unwrap();
        notified.insert(id.split('-').next().unwrap().parse::<u32>().unwrap());
    }
    assert!(notified.into_iter().eq(1000..1040));
    home.stop().await;
}
