//! The inbox over MQTT, end to end, with devices of both protocol versions.

use antumbra_dynamodb::{DynamoDbInbox, MESSAGES};
use antumbra_local::stack::Options;
use antumbra_service::inbox::{Body, InboxMessage, MessageId, MessageWriter as _, Source};
use antumbra_shadow::Timestamp;
use rumqttc::v5::mqttbytes::v5::PublishProperties;
use serde_json::{Value, json};

use crate::{device::v5, support::Home};

/// A stack with messages 1 to 3 of a source.
async fn home(uuid: &str) -> Home {
    let home = Home::start(Options::default()).await;
    let inbox = DynamoDbInbox::connect(&home.database(), MESSAGES.name);
    for n in 1..=3 {
        let message = InboxMessage {
            source: Source::new(uuid).unwrap(),
            id: MessageId::new(n.to_string()).unwrap(),
            body: Body::parse(&format!(r#"{{"n":{n}.50}}"#)).unwrap(),
            received_at: Timestamp::default(),
            expires_at: None,
        };
        inbox.store(&message).await.unwrap();
    }
    home
}

/// Requests of a device in order: operation, id, expected response without the source.
const CONVERSATION: [(&str, &str, &str); 13] = [
    (
        "query",
        "",
        r#""newestMessageId":"3","oldestMessageId":"1""#,
    ),
    ("get", "1", r#""body":{"n":1.50},"messageId":"1""#),
    (
        "next",
        "1",
        r#""nextMessageId":"2","specifiedMessageId":"1""#,
    ),
    (
        "next",
        "2",
        r#""nextMessageId":"3","specifiedMessageId":"2""#,
    ),
    (
        "next",
        "3",
        r#""error":"No newer messages available","specifiedMessageId":"3""#,
    ),
    (
        "prev",
        "3",
        r#""previousMessageId":"2","specifiedMessageId":"3""#,
    ),
    ("list", "", r#""messageIds":["1","2","3"]"#),
    ("delete", "1", r#""messageId":"1""#),
    ("delete", "2", r#""messageId":"2""#),
    ("delete", "3", r#""messageId":"3""#),
    ("delete", "3", r#""messageId":"3""#),
    (
        "get",
        "1",
        r#""error":"Message not available","messageId":"1""#,
    ),
    ("query", "", r#""error":"No messages available""#),
];

fn response(members: &str, uuid: &str) -> String {
    format!(r#"{{{members},"uuid":"{uuid}"}}"#)
}

fn topic(operation: &str, uuid: &str, id: &str) -> String {
    let topic = format!("request/{operation}/{uuid}/{id}");
    topic.trim_end_matches('/').to_owned()
}

#[tokio::test]
async fn an_mqtt_3_device_reads_its_inbox() {
    let home = home("old").await;
    let mut device = home.device("old").await;
    device.subscribe("response/#").await;
    for (n, (operation, id, expected)) in CONVERSATION.into_iter().enumerate() {
        let payload = format!(r#"{{ "token": "t{n}" }}"#);
        let topic = topic(operation, "old", id);
        device.publish(&topic, false, &payload).await;
        let got = device.next().await;
        assert_eq!(got.topic, format!("response/{operation}/t{n}"));
        let text = String::from_utf8_lossy(&got.payload);
        assert_eq!(text, response(expected, "old"));
    }
    home.stop().await;
}

#[tokio::test]
async fn an_mqtt_5_device_reads_its_inbox() {
    let home = home("new").await;
    let mut device = v5::Device::new(home.stack.addresses().mqtt, "new").await;
    device.subscribe("response/new/#").await;
    for (n, (operation, id, expected)) in CONVERSATION.into_iter().enumerate() {
        let data = vec![0, 255, u8::try_from(n).unwrap()];
        let properties = PublishProperties {
            response_topic: Some(format!("response/new/{n}")),
            correlation_data: Some(data.clone().into()),
            ..PublishProperties::default()
        };
        let topic = topic(operation, "new", id);
        let qos = v5::QoS::AtLeastOnce;
        let published = device
            .client
            .publish_with_properties(topic, qos, false, "", properties);
        published.await.unwrap();
        let got = device.next().await;
        assert_eq!(&got.topic[..], format!("response/new/{n}").as_bytes());
        let text = String::from_utf8_lossy(&got.payload);
        assert_eq!(text, response(expected, "new"));
        let repeated = got.properties.unwrap().correlation_data.unwrap();
        assert_eq!(&repeated[..], data);
    }
}

#[tokio::test]
async fn a_device_sends_messages_and_lists_devices() {
    let home = home("lamp").await;
    let mut device = home.device("lamp").await;
    device.subscribe("response/#").await;
    for (topic, payload, expected) in [
        ("devices", json!({}), json!({"devices": []})),
        (
            "send/lamp",
            json!({"message": {"led": "on"}, "idempotencyKey": "k"}),
            json!({"idempotencyKey": "k", "uuid": "lamp"}),
        ),
    ] {
        let mut payload = payload;
        payload["token"] = json!("t");
        let request = format!("request/{topic}");
        device.publish(&request, false, &payload.to_string()).await;
        let response: Value = serde_json::from_str(&device.text().await).unwrap();
        assert_eq!(response, expected, "{topic}");
    }
    let received = home.receive("antumbra-outbound", 20).await;
    let expected = json!({"idempotencyKey": "k", "message": {"led": "on"}, "uuid": "lamp"});
    let sent: Value = serde_json::from_str(received[0].body().unwrap()).unwrap();
    assert_eq!(sent, expected);
}
