//! A stack with a topic prefix: requests, responses, notifications and the inbox, through an MQTT client.

use antumbra_local::stack::{Options, Settings};
use serde_json::{Value, json};

use crate::device::{v4, v5};
use crate::support::{Home, registrations};

async fn start() -> Home {
    let shipped = [
        include_str!("../../../../registrations/shadow-delta.json"),
        include_str!("../../../../registrations/shadow-documents.json"),
        include_str!("../../../../registrations/inbox-notifications.json"),
    ];
    Home::start(Options {
        registrations: registrations(shipped),
        settings: Settings::from([("TOPIC_PREFIX", "stage/")]),
        ..Options::default()
    })
    .await
}

/// The next message: its topic and JSON.
async fn next(device: &mut v4::Device) -> (String, Value) {
    let message = device.next().await;
    let topic = String::from_utf8(message.topic.as_bytes().to_vec()).unwrap();
    (topic, serde_json::from_slice(&message.payload).unwrap())
}

#[tokio::test]
async fn all_topics_have_the_prefix() {
    let home = start().await;
    let mut device = home.device("device").await;
    device.subscribe("#").await;

    // A request without the prefix belongs to another deployment.
    let report = json!({"state": {"reported": {"led": "off"}, "desired": {"led": "on"}}});
    let report = report.to_string();
    device.publish("shadow/lamp/update", false, &report).await;
    assert_eq!(next(&mut device).await.0, "shadow/lamp/update");

    device
        .publish("stage/shadow/lamp/update", false, &report)
        .await;
    let mut topics = Vec::new();
    for _ in 0..4 {
        topics.push(next(&mut device).await.0);
    }
    topics.sort();
    let expected = ["", "/accepted", "/delta", "/documents"];
    let expected = expected.map(|end| format!("stage/shadow/lamp/update{end}"));
    assert_eq!(topics, expected);

    let message = r#"{"thingName":"meter","epochTime":7}"#;
    home.send("antumbra-inbound", message).await;
    let (topic, key) = next(&mut device).await;
    assert_eq!(topic, "stage/notification/meter");
    let id = key["messageId"].as_str().unwrap();
    let request = format!("stage/request/get/meter/{id}");
    device.publish(&request, false, r#"{"token":"t"}"#).await;
    assert_eq!(next(&mut device).await.0, request);
    let (topic, response) = next(&mut device).await;
    assert_eq!(topic, "stage/response/get/t");
    assert_eq!(response["messageId"], id, "{response}");
    home.stop().await;
}

/// The sender of an MQTT 5 request chooses a topic with the prefix.
#[tokio::test]
async fn a_response_topic_needs_the_prefix() {
    let home = start().await;
    let mut device = v5::Device::new(home.stack.addresses().mqtt, "device").await;
    device.subscribe("+/response/#").await;
    device.subscribe("response/#").await;
    for (chosen, expected, error) in [
        ("stage/response/mine", "stage/response/mine", None),
        (
            "response/mine",
            "stage/response/devices/t",
            Some("The response topic must begin with stage/response/"),
        ),
    ] {
        let properties = rumqttc::v5::mqttbytes::v5::PublishProperties {
            response_topic: Some(chosen.to_owned()),
            ..Default::default()
        };
        let payload = r#"{"token":"t"}"#;
        let publish = device.client.publish_with_properties(
            "stage/request/devices",
            v5::QoS::AtLeastOnce,
            false,
            payload,
            properties,
        );
        publish.await.unwrap();
        let message = device.next().await;
        assert_eq!(message.topic, expected.as_bytes());
        let response: Value = serde_json::from_slice(&message.payload).unwrap();
        assert_eq!(response["error"].as_str(), error, "{response}");
    }
    home.stop().await;
}

/// Basic Ingest passes the topic after the rule's name.
#[tokio::test]
async fn reports_can_be_sent_by_basic_ingest() {
    let home = start().await;
    let mut device = home.device("device").await;
    device.subscribe("stage/shadow/lamp/update/accepted").await;
    let report = r#"{"state":{"reported":{"led":"off"}}}"#;
    let rule = "$aws/rules/antumbra_shadow_update/";
    // The function checks the topic: another operation or level is no report.
    for wrong in [
        "shadow/lamp/update",
        "stage/shadow/lamp",
        "stage/request/get/a/b",
    ] {
        device
            .publish(&format!("{rule}{wrong}"), false, report)
            .await;
    }
    let topic = format!("{rule}stage/shadow/lamp/update");
    device.publish(&topic, false, report).await;
    let (topic, response) = next(&mut device).await;
    assert_eq!(topic, "stage/shadow/lamp/update/accepted");
    assert_eq!(response["version"], 1);
    home.stop().await;
}
