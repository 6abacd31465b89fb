//! From a queue to the inbox and its notifications: the SQS SDK sends, the queue invokes message-ingest, the
//! table's stream invokes the listener, and the listener publishes.

use std::time::Duration;

use antumbra_dynamodb::{DynamoDbInbox, MESSAGES};
use antumbra_local::{
    clients::sdk_config,
    stack::{Options, Stack},
};
use antumbra_registration::Registrations;
use antumbra_service::clock::{Clock, SystemClock};
use antumbra_service::inbox::{MessageDeleter, MessageId, MessageReader, Source, Sources, span};
use aws_sdk_sqs::Client as Sqs;
use serde_json::Value;

use crate::mqtt::device::v4::Device;
use crate::support::soon;

/// The shipped registration.
const NOTIFICATIONS: &str = include_str!("../../../../registrations/inbox-notifications.json");

struct Home {
    stack: Stack,
    sqs: Sqs,
    inbox: DynamoDbInbox,
}

impl Home {
    async fn start() -> Home {
        let file = ("inbox-notifications.json", NOTIFICATIONS);
        let options = Options {
            registrations: Registrations::load([file], &|_| None).unwrap(),
            ..Options::default()
        };
        let stack = Stack::start(options).await.unwrap();
        Home {
            sqs: Sqs::new(&sdk_config(stack.addresses().aws)),
            inbox: DynamoDbInbox::connect(&sdk_config(stack.addresses().dynamodb), MESSAGES.name),
            stack,
        }
    }

    /// Sends a message and returns its id in the queue.
    async fn send(&self, body: &str) -> String {
        let call = self.sqs.send_message().message_body(body);
        let call = call.queue_url(self.stack.queue_url("antumbra-inbound"));
        call.send().await.unwrap().message_id.unwrap()
    }

    /// Returns text and reason of the next quarantined message.
    async fn quarantined(&self) -> (String, String) {
        let receiving = async {
            loop {
                let call = self.sqs.receive_message().message_attribute_names("All");
                let call = call.queue_url(self.stack.queue_url("antumbra-quarantine"));
                let got = call.wait_time_seconds(5).send().await.unwrap();
                if let Some(message) = got.messages().first() {
                    let attributes = message.message_attributes().unwrap();
                    let reason = attributes["reason"].string_value().unwrap();
                    return (message.body().unwrap().to_owned(), reason.to_owned());
                }
            }
        };
        soon("a message in the quarantine", receiving).await
    }
}

fn text(thing: &str, epoch: u32) -> String {
    format!(r#"{{ "thingName": "{thing}", "epochTime": "{epoch}", "tempSensor1F": 72.50 }}"#)
}

#[tokio::test]
async fn a_message_is_stored_and_notified() {
    let home = Home::start().await;
    let mut device = Device::new(home.stack.addresses().mqtt, "dashboard").await;
    device.subscribe("notification/testThing").await;
    let before = SystemClock.now();
    let queue_id = home.send(&text("testThing", 1564669331)).await;

    let told = device.next().await;
    assert_eq!(told.topic, "notification/testThing");
    let payload = String::from_utf8(told.payload.to_vec()).unwrap();
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
    device.leave().await;
    home.stack.stop().await;
}

#[tokio::test]
async fn bad_messages_are_quarantined_and_good_ones_stored() {
    let home = Home::start().await;
    let mut device = Device::new(home.stack.addresses().mqtt, "dashboard").await;
    device.subscribe("notification/#").await;
    home.send("{ not JSON").await;
    home.send(&text("lamp", 1)).await;
    assert_eq!(device.next().await.topic, "notification/lamp");
    let (text, reason) = home.quarantined().await;
    assert_eq!((text.as_str(), reason.as_str()), ("{ not JSON", "NotJson"));
    device.leave().await;
    home.stack.stop().await;
}

/// Deleted messages and records of sources are not notified.
#[tokio::test]
async fn only_new_messages_are_notified() {
    let home = Home::start().await;
    let mut device = Device::new(home.stack.addresses().mqtt, "dashboard").await;
    device.subscribe("notification/#").await;
    home.send(&text("lamp", 1)).await;
    device.next().await;
    let source = Source::new("lamp").unwrap();
    let only = span(&home.inbox, &source).await.unwrap().unwrap().oldest;
    home.inbox
        .delete(&source, &only, SystemClock.now())
        .await
        .unwrap();
    home.send(&text("lamp", 2)).await;
    let told: Value = serde_json::from_str(&device.text().await).unwrap();
    assert!(
        told["messageId"].as_str().unwrap().starts_with("2-"),
        "{told}"
    );
    let left = span(&home.inbox, &source).await.unwrap().unwrap();
    assert_eq!(left.oldest, left.newest);
    device.leave().await;
    home.stack.stop().await;
}

#[tokio::test]
async fn every_message_of_a_burst_is_stored_and_notified() {
    let home = Home::start().await;
    let mut device = Device::new(home.stack.addresses().mqtt, "dashboard").await;
    device.subscribe("notification/+").await;
    for number in 0..40 {
        home.send(&text(&format!("thing-{}", number % 4), 1000 + number))
            .await;
    }
    let mut told = std::collections::BTreeSet::new();
    while told.len() < 40 {
        let value: Value = serde_json::from_str(&device.text().await).unwrap();
        let id = value["messageId"].as_str().unwrap();
        told.insert(id.split('-').next().unwrap().parse::<u32>().unwrap());
    }
    assert!(told.into_iter().eq(1000..1040));
    device.leave().await;
    home.stack.stop().await;
}
