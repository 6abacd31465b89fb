//! From a report to its notifications: the shadow SDK writes to the table, the stream invokes the listener,
//! and the listener sends to queues, topics and devices.

use std::collections::BTreeMap;

use antumbra_dynamodb::{DynamoDbShadows, MAIN, ShadowTableConfig};
use antumbra_local::{clients::sdk_config, queues::queue_arn, stack::Options};
use antumbra_service::shadows::{Delete, ExpectedVersion, Layout, ShadowId, Shadows};
use aws_sdk_sns::Client as Sns;
use aws_sdk_sqs::types::{Message, MessageSystemAttributeName as System};
use serde_json::{Value, json};

use crate::device::v4::Device;
use crate::support::{self, registrations, soon};

const TOPIC: &str = "arn:aws:sns:us-east-1:000000000000:alarms";

struct Home {
    services: support::Home,
    shadows: Shadows<DynamoDbShadows>,
}

impl Home {
    async fn start(layout: Layout, rules: &[Value]) -> Home {
        let services = support::Home::start(Options {
            registrations: registrations(rules.iter().map(Value::to_string)),
            settings: support::settings(layout),
            ..Options::default()
        })
        .await;
        let config = ShadowTableConfig::new(MAIN.name).layout(layout);
        let store = DynamoDbShadows::connect(&services.database(), config);
        Home {
            shadows: Shadows::new(store),
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
        Layout::Separate,
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
    )
    .await;
    home.subscribe("alarms-box").await;
    let mut display = home.services.device("wall-display").await;
    display.subscribe("desired/#").await;

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
        other_version: None,
        time: None,
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

    let updates = temps.len() as u64;
    for (device, removed) in devices.into_iter().zip([0, 1]) {
        let of_device = history.iter().filter(|got| is_about(&body(got), device));
        let its: Vec<_> = of_device.collect();
        assert_eq!(its.len(), temps.len() + removed);
        for (message, version) in its.iter().zip(1..=updates) {
            let body = body(message);
            assert_eq!(body["version"], version, "gapless and in order");
            let previous = (version > 1).then(|| json!(version - 1));
            assert_eq!(body.get("previousVersion"), previous.as_ref());
            assert_eq!(body["new"]["temp"], temps[version as usize - 1]);
            let group = format!("DS#{device}#DSR#main");
            assert_eq!(system(message, System::MessageGroupId), group);
            assert_eq!(body["id"], system(message, System::MessageDeduplicationId));
            let operation = if version == 1 { "insert" } else { "modify" };
            let expected = [
                ("operation", operation),
                ("registration", "history"),
                ("shadow", device),
                ("state", "reported"),
            ];
            assert_eq!(attributes(message), expected.into());
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

    let mut crossed = Vec::new();
    for message in alarms.iter().filter(|got| !is_last(&body(got))) {
        let (body, attributes) = (body(message), attributes(message));
        assert!(body["old"]["temp"].as_u64() <= Some(30));
        assert!(body["new"]["temp"].as_u64() > Some(30));
        assert_eq!(attributes["registration"], "too-warm");
        crossed.push((
            attributes["shadow"].to_owned(),
            body["version"].as_u64().unwrap(),
        ));
    }
    crossed.sort();
    let each = |device: &str| crossings.map(|version| (device.to_owned(), version));
    assert_eq!(
        crossed,
        [each("house#attic"), each("house#cellar")].concat()
    );

    let desired = desired.iter().filter(|(_, body)| !is_last(body));
    let desired = desired.map(|(topic, body)| json!([topic, body["version"], body["new"]["mode"]]));
    let expected = [
        json!(["desired/house%23cellar/insert", 1, 0]),
        json!(["desired/house%23cellar/modify", 2, 4]),
        json!(["desired/house%23cellar/modify", 3, 8]),
    ];
    assert_eq!(desired.collect::<Vec<_>>(), expected);

    // There are no other notifications.
    let of_last = |messages: &[Message]| messages.iter().map(body).filter(&is_last).count();
    let counts = (of_last(&history), of_last(&alarms));
    assert!((3..=4).contains(&counts.0) && counts.1 == 2, "{counts:?}");
    assert_eq!(history.len(), devices.len() * temps.len() + 1 + counts.0);
    for queue in ["elsewhere", "antumbra-undeliverable"] {
        assert!(home.services.receive(queue, 0).await.is_empty(), "{queue}");
    }
    home.services.stop().await;
}

/// A registration on acknowledged values fires when the device reports them, and not when somebody withdraws them.
#[tokio::test]
async fn acknowledged_values_are_told_from_withdrawn_ones() {
    for layout in [Layout::Separate, Layout::Combined] {
        let leaf = json!({ "path": "/lamps/*", "change": ["acknowledged"], "old": ["on"] });
        let rule = json!({ "name": "carried-out", "on": { "state": "desired", "leaf": leaf },
                           "send": ["diff"], "to": { "sqs": { "queue": "carried-out.fifo" } } });
        let home = Home::start(layout, &[rule]).await;
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
        let of_hall = all
            .iter()
            .map(body)
            .filter(|body| is_about(body, "house#hall"));
        let of_hall: Vec<Value> = of_hall.collect();
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
