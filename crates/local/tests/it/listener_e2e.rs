//! From a report to its notifications: the shadow SDK writes to the table, the stream invokes the listener,
//! and the listener sends to queues, topics and devices.

use std::collections::BTreeMap;

use antumbra_dynamodb::{DynamoDbShadows, MAIN, ShadowTableConfig};
use antumbra_local::{clients::sdk_config, queues::queue_arn, stack::Options};
use antumbra_service::shadows::{Delete, ExpectedVersion, Layout, ShadowId, Shadows, Update};
use antumbra_shadow::Document;
use aws_sdk_sns::Client as Sns;
use aws_sdk_sqs::types::{Message, MessageSystemAttributeName as System};
use serde_json::{Value, json};

use crate::device::v4::Device;
use crate::support::{self, registrations, soon};

const TOPIC: &str = "arn:aws:sns:us-east-1:000000000000:alarms";
const UNDELIVERABLE: &str = "antumbra-undeliverable";

struct Home {
    services: support::Home,
    shadows: Shadows<DynamoDbShadows>,
}

impl Home {
    async fn start(rules: &[Value], layout: Layout) -> Home {
        let services = support::Home::start(Options {
            registrations: registrations(rules.iter().map(Value::to_string)),
            ..Options::default()
        })
        .await;
        let config = ShadowTableConfig::new(MAIN.name).layout(layout);
        let database = sdk_config(services.stack.addresses().dynamodb);
        Home {
            shadows: Shadows::new(DynamoDbShadows::connect(&database, config)),
            services,
        }
    }

    /// Subscribes a queue to the topic.
    async fn subscribe(&self, queue: &str) {
        let sns = Sns::new(&sdk_config(self.services.stack.addresses().aws));
        let made = self.services.sqs.create_queue().queue_name(queue);
        made.send().await.unwrap();
        let request = sns.subscribe().topic_arn(TOPIC).protocol("sqs");
        let request = request.endpoint(queue_arn(queue));
        let request = request.attributes("RawMessageDelivery", "true");
        request.send().await.unwrap();
    }

    /// Receives messages of a queue until one is about this device.
    async fn until(&self, queue: &str, device: &str) -> Vec<Message> {
        let mut all = Vec::new();
        let receiving = async {
            while !all.iter().any(|message| is_about(&body(message), device)) {
                all.extend(self.services.receive(queue, 5).await);
            }
            // A FIFO queue keeps the order only within a group.
            loop {
                let left = self.services.receive(queue, 0).await;
                if left.is_empty() {
                    break;
                }
                all.extend(left);
            }
        };
        soon(device, receiving).await;
        all
    }

    /// Returns whether a queue is empty now.
    async fn is_empty(&self, queue: &str) -> bool {
        self.services.receive(queue, 0).await.is_empty()
    }

    /// Connects a device that subscribes to a topic filter.
    async fn display(&self, filter: &str) -> Device {
        let mut display = self.services.device("wall-display").await;
        display.subscribe(filter).await;
        display
    }

    async fn report(&self, id: &str, document: Value) {
        let shadow = ShadowId::new(id).unwrap();
        self.shadows.report(&shadow, &document).await.unwrap();
    }

    async fn desire(&self, id: &str, document: Value) {
        let shadow = ShadowId::new(id).unwrap();
        self.shadows.desire(&shadow, &document).await.unwrap();
    }
}

fn body(message: &Message) -> Value {
    serde_json::from_str(message.body().unwrap()).unwrap()
}

fn is_about(body: &Value, device: &str) -> bool {
    body["shadow"]["id"] == device
}

fn system(message: &Message, name: System) -> &str {
    &message.attributes().unwrap()[&name]
}

fn attributes(message: &Message) -> BTreeMap<&str, &str> {
    let all = message.message_attributes().unwrap().iter();
    all.map(|(name, value)| (name.as_str(), value.string_value().unwrap()))
        .collect()
}

/// Receives topics and bodies until one is about this device.
async fn messages_until(display: &mut Device, device: &str) -> Vec<(String, Value)> {
    let mut all: Vec<(String, Value)> = Vec::new();
    while !all.iter().any(|(_, body)| is_about(body, device)) {
        let message = display.next().await;
        let body = serde_json::from_slice(&message.payload).unwrap();
        all.push((message.topic, body));
    }
    all
}

/// Devices that match every registration of a test. The second is written after the notification of the first
/// has arrived: once its own notification arrives, all earlier changes are processed.
const LAST: [&str; 2] = ["house#last-1", "house#last-2"];

#[tokio::test]
async fn matching_reports_reach_their_targets_in_order() {
    let pattern = json!({
        "old": { "temp": [{ "numeric": ["<=", 30] }] },
        "new": { "temp": [{ "numeric": [">", 30] }] },
    });
    let home = Home::start(
        &[
            json!({ "name": "history", "on": { "key": "^DS#house#", "state": "reported" },
                    "send": ["old", "new", "diff"], "to": { "sqs": { "queue": "history.fifo" } } }),
            json!({ "name": "too-warm", "on": { "state": "reported", "pattern": pattern },
                    "send": ["old", "new"], "to": { "sns": { "topic": TOPIC } } }),
            json!({ "name": "desired", "on": { "state": "desired" }, "send": ["new"],
                    "to": { "mqtt": { "topic": "desired/${id}/${operation}" } } }),
            json!({ "name": "elsewhere", "on": { "key": "^DS#other-house#" },
                    "to": { "sqs": { "queue": "elsewhere" } } }),
        ],
        Layout::Separate,
    )
    .await;
    home.subscribe("alarms-box").await;
    let mut display = home.display("desired/#").await;

    // Two devices alternately; `crossings` are the versions in which a temperature exceeds 30.
    let temps = [20, 25, 31, 40, 45, 30, 10, 35, 35, 29, 50, 12];
    let crossings = [3, 8, 11];
    let devices = ["house#cellar", "house#attic"];
    for (n, temp) in temps.iter().enumerate() {
        for device in devices {
            home.report(device, json!({ "temp": temp, "n": n })).await;
        }
        if n % 4 == 0 {
            home.desire("house#cellar", json!({ "mode": n })).await;
        }
    }
    let gone = Delete {
        shadow: ShadowId::new("house#attic").unwrap(),
        reported: Some(ExpectedVersion::Any),
        desired: None,
    };
    home.shadows.delete(gone).await.unwrap();
    // No registration matches this.
    home.report("garden#pond", json!({ "temp": 12 })).await;

    let (mut history, mut alarms, mut desired) = (Vec::new(), Vec::new(), Vec::new());
    for last in LAST {
        home.report(last, json!({ "temp": 0 })).await;
        home.report(last, json!({ "temp": 99 })).await;
        home.desire(last, json!({ "mode": "on" })).await;
        history.extend(home.until("history.fifo", last).await);
        alarms.extend(home.until("alarms-box", last).await);
        desired.extend(messages_until(&mut display, last).await);
    }
    let is_last = |body: &Value| LAST.iter().any(|last| is_about(body, last));

    for device in devices {
        let its: Vec<_> = history
            .iter()
            .filter(|got| is_about(&body(got), device))
            .collect();
        let updates = temps.len() as u64;
        let removed = usize::from(device == "house#attic");
        assert_eq!(its.len(), temps.len() + removed);
        for (message, version) in its.iter().zip(1..=updates) {
            let body = body(message);
            assert_eq!(body["version"], version, "gapless and in order");
            let previous = (version > 1).then_some(version - 1);
            assert_eq!(
                body.get("previousVersion"),
                previous.map(Value::from).as_ref()
            );
            assert_eq!(body["new"]["temp"], temps[version as usize - 1]);
            assert_eq!(
                system(message, System::MessageGroupId),
                format!("DS#{device}#DSR#main")
            );
            assert_eq!(
                system(message, System::MessageDeduplicationId),
                body["id"].as_str().unwrap()
            );
            let operation = if version == 1 { "insert" } else { "modify" };
            assert_eq!(
                attributes(message),
                [
                    ("operation", operation),
                    ("registration", "history"),
                    ("shadow", device),
                    ("state", "reported")
                ]
                .into()
            );
        }
        for message in &its[temps.len()..] {
            let body = body(message);
            assert_eq!(
                (&body["operation"], &body["version"]),
                (&json!("remove"), &json!(updates))
            );
            assert_eq!(body["old"]["n"], temps.len() - 1);
        }
    }

    let mut crossed: Vec<(String, u64)> = alarms
        .iter()
        .filter(|got| !is_last(&body(got)))
        .map(|message| {
            let body = body(message);
            assert!(
                body["old"]["temp"].as_u64() <= Some(30) && body["new"]["temp"].as_u64() > Some(30)
            );
            let attributes = attributes(message);
            assert_eq!(attributes["registration"], "too-warm");
            (
                attributes["shadow"].to_owned(),
                body["version"].as_u64().unwrap(),
            )
        })
        .collect();
    crossed.sort();
    let each = |device: &str| crossings.map(|version| (device.to_owned(), version));
    assert_eq!(
        crossed,
        [each("house#attic"), each("house#cellar")].concat()
    );

    let desired_only: Vec<_> = desired.iter().filter(|(_, body)| !is_last(body)).collect();
    let received: Vec<_> = desired_only
        .iter()
        .map(|(topic, body)| {
            (
                topic.as_str(),
                body["version"].as_u64().unwrap(),
                &body["new"]["mode"],
            )
        })
        .collect();
    let modes = [json!(0), json!(4), json!(8)];
    assert_eq!(
        received,
        [
            ("desired/house%23cellar/insert", 1, &modes[0]),
            ("desired/house%23cellar/modify", 2, &modes[1]),
            ("desired/house%23cellar/modify", 3, &modes[2]),
        ]
    );

    // There are no other notifications.
    let updates = devices.len() * temps.len() + 1;
    let of_last = |bodies: &mut dyn Iterator<Item = Value>| bodies.filter(&is_last).count();
    let counts = (
        of_last(&mut history.iter().map(body)),
        of_last(&mut alarms.iter().map(body)),
    );
    assert!((3..=4).contains(&counts.0) && counts.1 == 2, "{counts:?}");
    assert_eq!(history.len(), updates + counts.0);
    assert!(home.is_empty("elsewhere").await);
    assert!(home.is_empty(UNDELIVERABLE).await);
    home.services.stop().await;
}

/// A registration on acknowledged values fires when the device reports them, and not when somebody withdraws them.
#[tokio::test]
async fn acknowledged_values_are_told_from_withdrawn_ones() {
    for layout in [Layout::Separate, Layout::Combined] {
        let leaf = json!({ "path": "/lamps/*", "change": ["acknowledged"], "old": ["on"] });
        let home = Home::start(
            &[
                json!({ "name": "carried-out", "on": { "state": "desired", "leaf": leaf },
                        "send": ["diff"], "to": { "sqs": { "queue": "carried-out.fifo" } } }),
            ],
            layout,
        )
        .await;
        let lamps = |left: &str, right: Value| json!({ "lamps": { "left": left, "right": right } });
        home.desire("house#hall", lamps("on", json!("off"))).await;
        home.report("house#hall", lamps("on", json!("off"))).await;
        home.desire("house#hall", lamps("off", json!("on"))).await;
        home.desire("house#hall", lamps("off", Value::Null)).await;
        home.report("house#hall", lamps("off", json!("on"))).await;
        for last in LAST {
            home.desire(last, lamps("on", json!("on"))).await;
            home.report(last, lamps("on", json!("on"))).await;
        }
        let all = home.until("carried-out.fifo", LAST[1]).await;
        let of_hall: Vec<Value> = all
            .iter()
            .map(body)
            .filter(|body| is_about(body, "house#hall"))
            .collect();
        let [body] = &of_hall[..] else {
            panic!("{layout:?}: {of_hall:?}")
        };
        let matched = json!([{ "path": "/lamps/left", "change": "acknowledged", "old": "on" }]);
        assert_eq!(body["matched"], matched, "{layout:?}");
        assert_eq!(
            body["diff"]["removed"],
            json!({ "/lamps/left": "on", "/lamps/right": "off" })
        );
        home.services.stop().await;
    }
}

#[tokio::test]
async fn undeliverable_notifications_do_not_delay_others() {
    let home = Home::start(
        &[
            json!({ "name": "nobody", "on": { "key": "^DS#house#lamp#" },
                    "to": { "sqs": { "queue": "arn:aws:sqs:us-east-1:111111111111:nobody" } } }),
            json!({ "name": "live", "on": { "key": "^DS#house#" }, "send": ["new", "diff"],
                    "to": { "mqtt": { "topic": "live/${id}" } } }),
            json!({ "name": "history", "on": { "key": "^DS#house#" },
                    "to": { "sqs": { "queue": "history.fifo" } } }),
        ],
        Layout::Separate,
    )
    .await;
    let mut display = home.display("live/#").await;
    home.report("house#lamp", json!({ "on": true })).await;
    // Too large for MQTT with the document or the diff, but not for the queue.
    home.report("house#lamp", json!({ "text": "x".repeat(150_000) }))
        .await;
    home.report("house#lamp", json!({ "on": false })).await;

    let (mut history, mut live) = (Vec::new(), Vec::new());
    for last in LAST {
        home.report(last, json!({ "on": true })).await;
        history.extend(home.until("history.fifo", last).await);
        live.extend(messages_until(&mut display, last).await);
    }
    let versions = |bodies: Vec<Value>| -> Vec<u64> {
        let of_lamp = bodies.iter().filter(|body| is_about(body, "house#lamp"));
        of_lamp
            .map(|body| body["version"].as_u64().unwrap())
            .collect()
    };
    assert_eq!(versions(history.iter().map(body).collect()), [1, 2, 3]);
    let truncated = |version: u64| {
        let found = live.iter().find(|(_, body)| body["version"] == version);
        found.unwrap().1["truncated"].clone()
    };
    assert_eq!(truncated(2), json!(["new", "diff"]));
    // The large text is still in the document.
    assert_eq!(truncated(3), json!(["new"]));
    assert_eq!(
        versions(live.into_iter().map(|(_, body)| body).collect()),
        [1, 2, 3]
    );

    let mut undeliverable = Vec::new();
    while undeliverable.len() < 3 {
        let got = soon(
            "an undeliverable notification",
            home.services.receive(UNDELIVERABLE, 5),
        );
        undeliverable.extend(got.await.iter().map(body));
    }
    undeliverable.sort_by_key(|body| {
        let at = |name: &str| body[name].to_string();
        let version = body["notification"]["version"].as_u64();
        (at("key"), at("registration"), version)
    });
    let text = |body: &Value, name: &str| body[name].as_str().unwrap().to_owned();
    let received: Vec<_> = undeliverable
        .iter()
        .map(|body| [text(body, "registration"), text(body, "key")])
        .collect();
    assert_eq!(received, [["nobody", "DS#house#lamp#DSR#main"]; 3]);
    for (body, version) in undeliverable.iter().zip(1..) {
        assert_eq!(body["notification"]["version"], version, "{body}");
        assert!(
            body["reason"].as_str().unwrap().contains("nobody"),
            "{body}"
        );
    }
    assert!(home.is_empty(UNDELIVERABLE).await);
    home.services.stop().await;
}

#[tokio::test]
async fn changes_of_a_combined_item_are_notified_per_document() {
    let home = Home::start(
        &[json!({ "name": "all", "send": ["new"], "to": { "sqs": { "queue": "all.fifo" } } })],
        Layout::Combined,
    )
    .await;
    let document = |text: &str| Document::parse(text).unwrap();
    let lamp = ShadowId::new("house#lamp").unwrap();
    home.report("house#lamp", json!({ "on": false })).await;
    home.desire("house#lamp", json!({ "level": 7 })).await;
    let both = Update::report(lamp, document(r#"{"on":true}"#));
    let both = both.and_desire(document(r#"{"level":8}"#));
    home.shadows.update(both).await.unwrap();
    let mut all = Vec::new();
    for last in LAST {
        home.report(last, json!({ "on": true })).await;
        all.extend(home.until("all.fifo", last).await);
    }
    let received: Vec<_> = all
        .iter()
        .map(body)
        .filter(|body| is_about(body, "house#lamp"))
        .map(|body| json!([body["version"], body["shadow"]["state"], body["new"]]))
        .collect();
    assert_eq!(
        received,
        [
            json!([1, "reported", { "on": false }]),
            json!([2, "desired", { "level": 7 }]),
            json!([3, "reported", { "on": true }]),
            json!([3, "desired", { "level": 8 }]),
        ]
    );
    assert!(home.is_empty(UNDELIVERABLE).await);
    home.services.stop().await;
}

#[tokio::test]
async fn oversized_notifications_omit_the_old_document() {
    let whole = json!({ "name": "whole", "send": ["old", "new"], "to": { "sqs": { "queue": "whole.fifo" } } });
    let home = Home::start(&[whole], Layout::Separate).await;
    for letter in ["x", "y"] {
        home.report("house", json!({ "text": letter.repeat(150_000) }))
            .await;
    }
    let mut got = Vec::new();
    while got.len() < 2 {
        let received = home.services.receive("whole.fifo", 5);
        got.extend(soon("a notification", received).await.iter().map(body));
    }
    assert_eq!(got[1]["truncated"], json!(["old"]));
    assert_eq!(got[1]["new"]["text"].as_str().map(str::len), Some(150_000));
    assert!(home.is_empty(UNDELIVERABLE).await);
    home.services.stop().await;
}
