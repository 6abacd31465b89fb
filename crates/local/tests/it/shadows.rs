//! Shadows over MQTT, end to end: requests, responses, and notifications of every change.

use std::collections::BTreeMap;
use std::time::Duration;

use antumbra_dynamodb::{DynamoDbShadows, MAIN, ShadowTableConfig};
use antumbra_local::stack::Options;
use antumbra_service::shadows::{Layout, ShadowId, Shadows};
use serde_json::{Value, json};

use crate::device::v4::{Device, QoS};
use crate::support::{Home, registrations, settings};

/// A stack with the shipped registrations that notify devices of their shadows.
async fn start(layout: Layout) -> Home {
    let shipped = [
        include_str!("../../../../registrations/shadow-delta.json"),
        include_str!("../../../../registrations/shadow-documents.json"),
    ];
    Home::start(Options {
        registrations: registrations(shipped),
        settings: settings(layout),
        ..Options::default()
    })
    .await
}

/// Receives the next message, with its topic below the shadow's prefix.
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

/// Receives messages by topic, because the order between topics is not guaranteed.
async fn several(device: &mut Device, prefix: &str, count: usize) -> BTreeMap<String, Value> {
    let mut received = BTreeMap::new();
    for _ in 0..count {
        let (topic, payload) = next(device, prefix).await;
        assert_eq!(
            received.insert(topic.clone(), payload),
            None,
            "{topic} twice"
        );
    }
    received
}

/// Changes over MQTT and through the SDK, in both layouts.
#[tokio::test]
async fn a_device_is_notified_of_changes_from_every_interface() {
    for layout in [Layout::Separate, Layout::Combined] {
        let home = start(layout).await;
        let mut ours = home.device("ours").await;
        let mut awss = home.device("awss").await;
        ours.subscribe("shadow/lamp/#").await;
        awss.subscribe("$aws/things/lamp/shadow/update/+").await;

        // Over MQTT.
        let report = r#"{"state":{"reported":{"led":"off"}},"clientToken":"t"}"#;
        ours.publish("shadow/lamp/update", false, report).await;
        let received = several(&mut ours, "shadow/lamp/", 3).await;
        assert_eq!(received["update/accepted"]["version"], 1);
        let documents = &received["update/documents"];
        assert_eq!(documents["current"]["state"]["reported"]["led"], "off");
        assert_eq!(documents["clientToken"], "t");
        assert_eq!(documents.get("previous"), None);
        let notified = next(&mut awss, "$aws/things/lamp/shadow/update/").await;
        assert_eq!(notified, ("documents".to_owned(), documents.clone()));

        // Through the SDK, directly to the table.
        let config = ShadowTableConfig::new(MAIN.name).layout(layout);
        let sdk = Shadows::new(DynamoDbShadows::connect(&home.database(), config));
        let lamp = ShadowId::new("lamp").unwrap();
        sdk.desire(&lamp, &json!({"led": "on", "deep": {"a": 1}}))
            .await
            .unwrap();
        let received = several(&mut ours, "shadow/lamp/", 2).await;
        let delta = &received["update/delta"];
        assert_eq!(delta["state"], json!({"led": "on", "deep": {"a": 1}}));
        assert_eq!(delta["version"], 2);
        assert!(delta["metadata"]["deep"]["a"]["timestamp"].is_u64());
        let documents = &received["update/documents"];
        assert_eq!(documents["previous"]["version"], 1);
        assert_eq!(
            documents["previous"]["state"],
            json!({"reported": {"led": "off"}})
        );
        assert_eq!(documents["current"]["version"], 2);
        let both = json!({"desired": {"led": "on", "deep": {"a": 1}}, "reported": {"led": "off"}});
        assert_eq!(documents["current"]["state"], both);
        let received = several(&mut awss, "$aws/things/lamp/shadow/update/", 2).await;
        assert_eq!(received["delta"], *delta);

        // Both documents in one write are one change, without notifications of an intermediate state.
        let both = r#"{"state":{"reported":{"led":"on","deep":{"a":1}},"desired":{"led":"on","deep":{"a":1},"fan":2}}}"#;
        ours.publish("shadow/lamp/update", false, both).await;
        let received = several(&mut ours, "shadow/lamp/", 4).await;
        let version = &received["update/accepted"]["version"];
        assert_eq!(received["update/delta"]["state"], json!({"fan": 2}));
        assert_eq!(received["update/delta"]["version"], *version);
        let documents = &received["update/documents"];
        assert_eq!(documents["previous"]["version"], 2, "{layout:?}");
        assert_eq!(documents["current"]["version"], *version);
        several(&mut awss, "$aws/things/lamp/shadow/update/", 2).await;

        // Reported equals desired: documents and no delta. A delete is not notified.
        let report = r#"{"state":{"reported":{"fan":2}}}"#;
        ours.publish("shadow/lamp/update", false, report).await;
        let received = several(&mut ours, "shadow/lamp/", 2 + 1).await;
        assert!(received.contains_key("update") && received.contains_key("update/documents"));
        ours.publish("shadow/lamp/delete", false, "").await;
        let (topic, _) = next(&mut ours, "shadow/lamp/").await;
        assert_eq!(topic, "delete");
        let (topic, gone) = next(&mut ours, "shadow/lamp/").await;
        assert_eq!(topic, "delete/accepted");
        // The next message is about the recreated shadow, whose versions continue.
        let report = r#"{"state":{"reported":{"led":"off"}}}"#;
        ours.publish("shadow/lamp/update", false, report).await;
        let received = several(&mut ours, "shadow/lamp/", 3).await;
        let version = received["update/accepted"]["version"].as_i64().unwrap();
        assert_eq!(version, gone["version"].as_i64().unwrap() + 1, "{layout:?}");
        assert_eq!(received["update/documents"]["current"]["version"], version);
        assert_eq!(received["update/documents"].get("previous"), None);
        ours.leave().await;
        awss.leave().await;
        home.stop().await;
    }
}

/// Messages of the AWS IoT Device SDK v2 for Python, recorded by `scripts/check-iot-sdk --record`.
#[tokio::test]
async fn the_exchange_with_the_aws_iot_sdk_is_unchanged() {
    let transcript = include_str!("../../testdata/iot-sdk-transcript.json");
    let transcript: Vec<Value> = serde_json::from_str(transcript).unwrap();
    let request = |topic: &str| {
        ["/get", "/update", "/delete"]
            .iter()
            .any(|end| topic.ends_with(end))
    };
    let home = start(Layout::Separate).await;
    let mut device = home.device("sdk-lamp").await;
    device.subscribe("$aws/things/+/shadow/#").await;
    let mut replayed = 0;
    let mut rest = &transcript[..];
    while let Some((message, behind)) = rest.split_first() {
        let topic = message["topic"].as_str().unwrap();
        assert!(request(topic), "{topic} comes before what caused it");
        // All messages before the next request.
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
        let mut received = BTreeMap::new();
        while received.len() < expected.len() {
            let (topic, payload) = next(&mut device, "").await;
            received.insert(topic, timeless(&payload));
        }
        assert_eq!(received, expected, "{topic}");
        replayed += received.len();
        rest = &behind[end..];
    }
    assert_eq!(replayed, transcript.len());
    assert!(replayed >= 50, "only {replayed}");
    // There are no more messages.
    let more = tokio::time::timeout(Duration::from_millis(1), device.next()).await;
    assert!(more.is_err());
    device.leave().await;
    home.stop().await;
}

/// Removes all times, which differ in each run.
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

/// Each device publishes on one connection without waiting. Rules invoke functions concurrently.
#[tokio::test]
async fn updates_published_in_order_end_in_the_last_one() {
    const UPDATES: i64 = 20;
    let home = Home::with_api(Options::default()).await;
    for round in ["cold", "warm"] {
        let devices = (0..20).map(async |n| {
            let shadow = format!("shadow/{round}-{n}");
            let mut device = home.device(&format!("{round}-{n}")).await;
            device.subscribe(&format!("{shadow}/update/accepted")).await;
            for led in 1..=UPDATES {
                let update = json!({"state": {"reported": {"led": led}}}).to_string();
                let topic = format!("{shadow}/update");
                let client = &device.client;
                client
                    .publish(topic, QoS::AtLeastOnce, false, update)
                    .await
                    .unwrap();
            }
            for _ in 0..UPDATES {
                device.next().await;
            }
            let path = format!("/v1/shadows/{round}-{n}");
            home.get(&path).await["reported"]["document"]["led"].clone()
        });
        let last = futures_util::future::join_all(devices).await;
        assert_eq!(last, vec![json!(UPDATES); 20], "{round}");
    }
    home.stop().await;
}

#[tokio::test]
async fn unconditional_reports_of_many_writers_all_succeed() {
    let home = Home::with_api(Options::default()).await;
    let writers = (0..20).map(async |writer| {
        let mut failed = Vec::new();
        for n in 0..50 {
            let report = json!({ format!("w{writer}"): n });
            let path = "/v1/shadows/busy/reported";
            let (status, response) = home.call_api("PATCH", path, &[], &report).await;
            if status != 200 {
                failed.push((status, response));
            }
        }
        failed
    });
    let failed: Vec<_> = futures_util::future::join_all(writers).await.concat();
    assert_eq!(failed, []);
    let (_, shadow) = home
        .call_api("GET", "/v1/shadows/busy", &[], &Value::Null)
        .await;
    assert_eq!(shadow["reported"]["version"], 1000);
    home.stop().await;
}
