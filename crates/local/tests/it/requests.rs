//! The inbox over MQTT, end to end, with devices of both protocol versions.

use antumbra_dynamodb::{DynamoDbInbox, MESSAGES};
use antumbra_local::{clients::sdk_config, stack::Options};
use antumbra_service::inbox::{Body, InboxMessage, MessageId, MessageWriter as _, Source};
use antumbra_shadow::Timestamp;
use rumqttc::v5::mqttbytes::v5::PublishProperties;
use serde_json::{Value, json};

use crate::{device::v5, support::Home};

/// A stack with messages 1 to 3 of a source.
async fn home(uuid: &str) -> Home {
    let home = Home::start(Options::default()).await;
    let database = sdk_config(home.stack.addresses().dynamodb);
    let inbox = DynamoDbInbox::connect(&database, MESSAGES.name);
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

/// Requests of a device in order: operation, id, expected response.
fn conversation(uuid: &str) -> Vec<(&'static str, &'static str, String)> {
    let mut conversation = vec![
        (
            "query",
            "",
            format!(r#"{{"newestMessageId":"3","oldestMessageId":"1","uuid":"{uuid}"}}"#),
        ),
        (
            "get",
            "1",
            format!(r#"{{"body":{{"n":1.50}},"messageId":"1","uuid":"{uuid}"}}"#),
        ),
    ];
    for (id, next) in [("1", "2"), ("2", "3")] {
        let response =
            format!(r#"{{"nextMessageId":"{next}","specifiedMessageId":"{id}","uuid":"{uuid}"}}"#);
        conversation.push(("next", id, response));
    }
    conversation.push((
        "next",
        "3",
        format!(
            r#"{{"error":"No newer messages available","specifiedMessageId":"3","uuid":"{uuid}"}}"#
        ),
    ));
    for id in ["1", "2", "3", "3"] {
        let response = format!(r#"{{"messageId":"{id}","uuid":"{uuid}"}}"#);
        conversation.push(("delete", id, response));
    }
    conversation.push((
        "get",
        "1",
        format!(r#"{{"error":"Message not available","messageId":"1","uuid":"{uuid}"}}"#),
    ));
    conversation.push((
        "query",
        "",
        format!(r#"{{"error":"No messages available","uuid":"{uuid}"}}"#),
    ));
    conversation
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
    for (n, (operation, id, expected)) in conversation("old").into_iter().enumerate() {
        let payload = format!(r#"{{ "token": "t{n}" }}"#);
        let topic = topic(operation, "old", id);
        device.publish(&topic, false, &payload).await;
        let response = device.next().await;
        assert_eq!(response.topic, format!("response/{operation}/t{n}"));
        assert_eq!(String::from_utf8_lossy(&response.payload), expected);
    }
    home.stop().await;
}

#[tokio::test]
async fn an_mqtt_5_device_reads_its_inbox() {
    let home = home("new").await;
    let mut device = v5::Device::new(home.stack.addresses().mqtt, "new").await;
    device.subscribe("response/new/#").await;
    for (n, (operation, id, expected)) in conversation("new").into_iter().enumerate() {
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
        let response = device.next().await;
        assert_eq!(&response.topic[..], format!("response/new/{n}").as_bytes());
        assert_eq!(String::from_utf8_lossy(&response.payload), expected);
        let repeated = response.properties.unwrap().correlation_data.unwrap();
        assert_eq!(&repeated[..], data);
    }
}

#[tokio::test]
async fn an_invalid_request_gets_one_error_response() {
    let home = home("lamp").await;
    let mut device = home.device("lamp").await;
    device.subscribe("response/#").await;
    for (topic, payload, to) in [
        ("request/get/lamp", r#"{"token":"t"}"#, "response/get/t"),
        ("request/get/lamp/1/x", r#"{"token":"t"}"#, "response/get/t"),
        ("request/get//1", r#"{"token":"t"}"#, "response/get/t"),
        ("request/get/lamp/1", "{}", "response/get/rejected"),
        ("request/get/lamp/1", "\u{7}", "response/get/rejected"),
        (
            "request/next/lamp/1",
            r#"{"token":"/"}"#,
            "response/next/rejected",
        ),
        ("request/delete/lamp/1", "", "response/delete/rejected"),
        ("request/devices", "[]", "response/devices/rejected"),
    ] {
        device.publish(topic, false, payload).await;
        let response = device.next().await;
        assert_eq!(response.topic, to, "{topic} {payload}");
        let error: Value = serde_json::from_slice(&response.payload).unwrap();
        assert_eq!(error["code"], "BadRequest", "{error}");
    }
    device
        .publish("request/query/lamp", false, r#"{"token":"t"}"#)
        .await;
    let response: Value = serde_json::from_str(&device.text().await).unwrap();
    assert_eq!(response["oldestMessageId"], "1");
}

#[tokio::test]
async fn all_other_operations_respond() {
    let home = home("lamp").await;
    let mut device = home.device("lamp").await;
    device.subscribe("response/#").await;
    for (topic, payload, expected) in [
        (
            "request/prev/lamp/3",
            json!({"token": "t"}),
            json!({"previousMessageId": "2", "specifiedMessageId": "3", "uuid": "lamp"}),
        ),
        (
            "request/list/lamp",
            json!({"token": "t", "newestFirst": true}),
            json!({"messageIds": ["3", "2", "1"], "uuid": "lamp"}),
        ),
        (
            "request/devices",
            json!({"token": "t"}),
            json!({"devices": []}),
        ),
        (
            "request/send/lamp",
            json!({"token": "t", "message": {"led": "on"}, "idempotencyKey": "k"}),
            json!({"idempotencyKey": "k", "uuid": "lamp"}),
        ),
    ] {
        device.publish(topic, false, &payload.to_string()).await;
        let response: Value = serde_json::from_str(&device.text().await).unwrap();
        assert_eq!(response, expected, "{topic}");
    }
    let received = home.receive("antumbra-outbound", 20).await;
    let expected = json!({"idempotencyKey": "k", "message": {"led": "on"}, "uuid": "lamp"});
    let sent: Value = serde_json::from_str(received[0].body().unwrap()).unwrap();
    assert_eq!(sent, expected);
}
