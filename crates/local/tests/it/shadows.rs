//! Shadows over MQTT, end to end: devices ask, the function answers, and the stream tells of every change.

use std::collections::BTreeMap;
use std::time::Duration;

use antumbra_dynamodb::{DynamoDbShadows, MAIN, ShadowTableConfig};
use antumbra_local::clients::sdk_config;
use antumbra_local::stack::{Options, Stack};
use antumbra_registration::Registrations;
use antumbra_service::shadows::{Layout, ShadowId, Shadows};
use serde_json::{Value, json};

use crate::mqtt::device::v4::Device;

/// The shipped registrations that tell devices of their shadows.
async fn stack(layout: Layout) -> Stack {
    let files = [
        (
            "shadow-delta.json",
            include_str!("../../../../registrations/shadow-delta.json"),
        ),
        (
            "shadow-documents.json",
            include_str!("../../../../registrations/shadow-documents.json"),
        ),
    ];
    let options = Options {
        registrations: Registrations::load(files, &|_| None).unwrap(),
        layout,
        ..Options::default()
    };
    Stack::start(options).await.unwrap()
}

/// The next message, its topic below the shadow's own.
async fn next(device: &mut Device, prefix: &str) -> (String, Value) {
    let message = device.next().await;
    let topic = String::from_utf8(message.topic.as_bytes().to_vec()).unwrap();
    let topic = topic
        .strip_prefix(prefix)
        .unwrap_or_else(|| panic!("{topic}"));
    let payload = match &message.payload[..] {
        b"" => Value::Null,
        payload => serde_json::from_slice(payload).unwrap(),
    };
    (topic.to_owned(), payload)
}

/// So many messages, by topic; the order between topics is nobody's promise.
async fn several(device: &mut Device, prefix: &str, count: usize) -> BTreeMap<String, Value> {
    let mut heard = BTreeMap::new();
    for _ in 0..count {
        let (topic, payload) = next(device, prefix).await;
        assert_eq!(heard.insert(topic.clone(), payload), None, "{topic} twice");
    }
    heard
}

/// Whichever door a change came through, and however the documents are kept.
#[tokio::test]
async fn a_device_is_notified_of_changes_from_every_interface() {
    for layout in [Layout::Separate, Layout::Combined] {
        let stack = stack(layout).await;
        let mut ours = Device::new(stack.addresses().mqtt, "ours").await;
        let mut awss = Device::new(stack.addresses().mqtt, "awss").await;
        ours.subscribe("shadow/lamp/#").await;
        awss.subscribe("$aws/things/lamp/shadow/update/+").await;

        // Over MQTT.
        let report = r#"{"state":{"reported":{"led":"off"}},"clientToken":"t"}"#;
        ours.publish("shadow/lamp/update", false, report).await;
        let heard = several(&mut ours, "shadow/lamp/", 3).await;
        assert_eq!(heard["update/accepted"]["version"], 1);
        let documents = &heard["update/documents"];
        assert_eq!(documents["current"]["state"]["reported"]["led"], "off");
        assert_eq!(documents["clientToken"], "t");
        assert_eq!(documents.get("previous"), None);
        let told = next(&mut awss, "$aws/things/lamp/shadow/update/").await;
        assert_eq!(told, ("documents".to_owned(), documents.clone()));

        // By the SDK, straight to the table.
        let config = ShadowTableConfig::new(MAIN.name).layout(layout);
        let database = sdk_config(stack.addresses().dynamodb);
        let sdk = Shadows::new(DynamoDbShadows::connect(&database, config));
        let lamp = ShadowId::new("lamp").unwrap();
        sdk.desire(&lamp, &json!({"led": "on", "deep": {"a": 1}}))
            .await
            .unwrap();
        let heard = several(&mut ours, "shadow/lamp/", 2).await;
        let delta = &heard["update/delta"];
        assert_eq!(delta["state"], json!({"led": "on", "deep": {"a": 1}}));
        assert_eq!(delta["version"], 2);
        assert!(delta["metadata"]["deep"]["a"]["timestamp"].is_u64());
        let documents = &heard["update/documents"];
        assert_eq!(documents["previous"]["version"], 1);
        assert_eq!(
            documents["previous"]["state"],
            json!({"reported": {"led": "off"}})
        );
        assert_eq!(documents["current"]["version"], 2);
        let both = json!({"desired": {"led": "on", "deep": {"a": 1}}, "reported": {"led": "off"}});
        assert_eq!(documents["current"]["state"], both);
        let heard = several(&mut awss, "$aws/things/lamp/shadow/update/", 2).await;
        assert_eq!(heard["delta"], *delta);

        // Both documents in one write are one change, and no state that never was is told of.
        let both = r#"{"state":{"reported":{"led":"on","deep":{"a":1}},"desired":{"led":"on","deep":{"a":1},"fan":2}}}"#;
        ours.publish("shadow/lamp/update", false, both).await;
        let heard = several(&mut ours, "shadow/lamp/", 4).await;
        let version = &heard["update/accepted"]["version"];
        assert_eq!(heard["update/delta"]["state"], json!({"fan": 2}));
        assert_eq!(heard["update/delta"]["version"], *version);
        let documents = &heard["update/documents"];
        assert_eq!(documents["previous"]["version"], 2, "{layout:?}");
        assert_eq!(documents["current"]["version"], *version);
        several(&mut awss, "$aws/things/lamp/shadow/update/", 2).await;

        // All is as desired: documents, and no delta. Then it is gone, and nothing is said of that.
        let report = r#"{"state":{"reported":{"fan":2}}}"#;
        ours.publish("shadow/lamp/update", false, report).await;
        let heard = several(&mut ours, "shadow/lamp/", 2 + 1).await;
        assert!(heard.contains_key("update") && heard.contains_key("update/documents"));
        ours.publish("shadow/lamp/delete", false, "").await;
        let (topic, _) = next(&mut ours, "shadow/lamp/").await;
        assert_eq!(topic, "delete");
        let (topic, gone) = next(&mut ours, "shadow/lamp/").await;
        assert_eq!(topic, "delete/accepted");
        // The next that is heard is of the next shadow, whose version goes on.
        let report = r#"{"state":{"reported":{"led":"off"}}}"#;
        ours.publish("shadow/lamp/update", false, report).await;
        let heard = several(&mut ours, "shadow/lamp/", 3).await;
        let version = heard["update/accepted"]["version"].as_i64().unwrap();
        assert_eq!(version, gone["version"].as_i64().unwrap() + 1, "{layout:?}");
        assert_eq!(heard["update/documents"]["current"]["version"], version);
        assert_eq!(heard["update/documents"].get("previous"), None);
        ours.leave().await;
        awss.leave().await;
        stack.stop().await;
    }
}

/// What the AWS IoT Device SDK v2 for Python said and heard, as `scripts/check-iot-sdk --record` kept it.
#[tokio::test]
async fn the_exchange_with_the_aws_iot_sdk_is_unchanged() {
    let transcript = include_str!("../../testdata/iot-sdk-transcript.json");
    let transcript: Vec<Value> = serde_json::from_str(transcript).unwrap();
    let request = |topic: &str| {
        ["/get", "/update", "/delete"]
            .iter()
            .any(|end| topic.ends_with(end))
    };
    let stack = stack(Layout::Separate).await;
    let mut device = Device::new(stack.addresses().mqtt, "sdk-lamp").await;
    device.subscribe("$aws/things/+/shadow/#").await;
    let mut replayed = 0;
    let mut rest = &transcript[..];
    while let Some((message, behind)) = rest.split_first() {
        let topic = message["topic"].as_str().unwrap();
        assert!(request(topic), "{topic} comes before what caused it");
        // All that was heard before the next request.
        let end = behind
            .iter()
            .position(|message| request(message["topic"].as_str().unwrap()))
            .unwrap_or(behind.len());
        let expected: BTreeMap<String, Value> = behind[..end]
            .iter()
            .chain([message])
            .map(|message| {
                (
                    message["topic"].as_str().unwrap().to_owned(),
                    timeless(&message["payload"]),
                )
            })
            .collect();
        device
            .publish(topic, false, &message["payload"].to_string())
            .await;
        let mut heard = BTreeMap::new();
        while heard.len() < expected.len() {
            let (topic, payload) = next(&mut device, "").await;
            heard.insert(topic, timeless(&payload));
        }
        assert_eq!(heard, expected, "{topic}");
        replayed += heard.len();
        rest = &behind[end..];
    }
    assert_eq!(replayed, transcript.len());
    assert!(replayed >= 50, "only {replayed}");
    // Nothing more comes.
    let more = tokio::time::timeout(Duration::from_millis(1), device.next()).await;
    assert!(more.is_err());
    device.leave().await;
    stack.stop().await;
}

/// The same with every time gone, which is another in each run.
fn timeless(value: &Value) -> Value {
    match value {
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| match name.as_str() {
                "timestamp" if value.is_u64() => (name.clone(), json!("time")),
                _ => (name.clone(), timeless(value)),
            })
            .collect(),
        Value::Array(elements) => elements.iter().map(timeless).collect(),
        other => other.clone(),
    }
}
