//! Exercises everything that the functions can do, and records their AWS calls.
//!
//! One file per part of the product. Tests check that it is complete: every operation of the HTTP API, every rule, and
//! every line that calls AWS.

mod clients;
mod inbox;
mod queues;
mod sensors;
mod shadows;

use std::collections::{BTreeSet, HashMap};
use std::sync::Mutex;
use std::time::Duration;

use antumbra_dynamodb::{MAIN, SECRETS};
use antumbra_local::clients::sdk_config;
use antumbra_local::stack::{Options, Webhooks};
use antumbra_registration::Registrations;
use antumbra_service::clock::ShiftedClock;
use antumbra_service::deliveries::{Delays, Policy};
use antumbra_service::shadows::Layout;
use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value, json};

use super::calls::Recorder;
use crate::device::v4::Device;
use crate::endpoint::Endpoints;
use crate::support::{self, Home, TOKEN, eventually, soon};

/// Targets of the scenario's own registrations.
pub(crate) const TARGETS: [(&str, &str); 4] = [
    (
        "TargetQueueArns",
        "arn:aws:sqs:us-east-1:000000000000:changes,arn:aws:sqs:us-east-1:000000000000:changes.fifo",
    ),
    (
        "TargetTopicArns",
        "arn:aws:sns:us-east-1:000000000000:changes",
    ),
    (
        "TargetBusArns",
        "arn:aws:events:us-east-1:000000000000:event-bus/changes",
    ),
    (
        "TargetMqttArns",
        "arn:aws:iot:us-east-1:000000000000:topic/changes/*",
    ),
];

/// The shipped registrations, and one for each kind of target that a deployment can add.
fn registrations() -> Registrations {
    let shipped = [
        include_str!("../../../../registrations/inbox-notifications.json"),
        include_str!("../../../../registrations/sensor-clients.json"),
        include_str!("../../../../registrations/shadow-delta.json"),
        include_str!("../../../../registrations/shadow-documents.json"),
    ];
    let own = [
        json!({"sqs": {"queue": "changes"}}),
        json!({"sqs": {"queue": "changes.fifo"}}),
        json!({"sns": {"topic": "arn:aws:sns:us-east-1:000000000000:changes"}}),
        json!({"eventbridge": {"bus": "changes"}}),
        json!({"mqtt": {"topic": "changes/${id}"}}),
    ];
    let own = own.into_iter().enumerate().map(|(number, to)| {
        let name = format!("changes-{number}");
        json!({"name": name, "on": {"key": "^DS#teller#"}, "to": to}).to_string()
    });
    let shipped = shipped.into_iter().map(str::to_owned);
    support::registrations(shipped.chain(own))
}

/// A stack and its clients.
pub(crate) struct Scenario {
    pub(crate) recorder: Recorder,
    home: Home,
    layout: Layout,
    /// Unknown sensors are registered at their first signal.
    newcomers: bool,
    clock: ShiftedClock,
    endpoints: Endpoints,
    device: Device,
    database: aws_sdk_dynamodb::Client,
    /// Called methods and paths, in the notation of the OpenAPI document.
    api_calls: Mutex<BTreeSet<(String, String)>>,
    /// Topics of published messages.
    published: BTreeSet<String>,
}

impl Scenario {
    pub(crate) async fn start(layout: Layout, newcomers: bool) -> Scenario {
        let recorder = Recorder::default();
        let clock = ShiftedClock::default();
        let policy = Policy {
            delays: Delays {
                first: Duration::ZERO,
                ..Delays::default()
            },
            // The circuit allows a trial after each failure.
            open_after: 1,
            open_first: Duration::ZERO,
            open_longest: Duration::ZERO,
            probe: Duration::from_millis(100),
            ..Policy::default()
        };
        let home = Home::start(Options {
            registrations: registrations(),
            clock: clock.clone(),
            settings: support::settings(layout)
                .with("AUTO_REGISTER", &newcomers.to_string())
                .with("AUTO_REGISTER_TYPE", "lock")
                .with("DATA", "scalar"),
            http_token: Some(TOKEN.to_owned()),
            http_clients: recorder.clients(),
            webhooks: Webhooks {
                policy: Some(policy),
                ..Webhooks::default()
            },
            ..Options::default()
        })
        .await;
        let mut device = home.device("device").await;
        for filter in ["response/#", "shadow/#", "notification/#", "changes/#"] {
            device.subscribe(filter).await;
        }
        Scenario {
            recorder,
            layout,
            newcomers,
            clock,
            endpoints: Endpoints::start().await,
            device,
            database: aws_sdk_dynamodb::Client::new(&sdk_config(home.stack.addresses().dynamodb)),
            home,
            api_calls: Mutex::default(),
            published: BTreeSet::new(),
        }
    }

    /// Runs all parts.
    pub(crate) async fn run(&mut self) {
        self.run_shadows().await;
        self.run_inbox().await;
        self.run_sensors().await;
        self.run_clients().await;
        self.run_queues().await;
    }

    pub(crate) async fn stop(self) {
        self.home.stop().await;
    }

    /// The called operations of the API.
    pub(crate) fn api_calls(&self) -> BTreeSet<(String, String)> {
        self.api_calls.lock().unwrap().clone()
    }

    /// The topics of published messages.
    pub(crate) fn published(&self) -> &BTreeSet<String> {
        &self.published
    }

    /// Calls the API and expects a status. `path` has `{}` for each of the parts.
    async fn call_api(
        &self,
        method: &str,
        path: &str,
        parts: &[&str],
        body: Value,
        expected: u16,
    ) -> Value {
        let filled = parts
            .iter()
            .fold(path.to_owned(), |path, part| path.replacen("{}", part, 1));
        let (plain, _) = path.split_once('?').unwrap_or((path, ""));
        let call = (method.to_owned(), plain.to_owned());
        self.api_calls.lock().unwrap().insert(call);
        self.request(method, &filled, &[], body, expected).await
    }

    async fn get(&self, path: &str, parts: &[&str]) -> Value {
        self.call_api("GET", path, parts, Value::Null, 200).await
    }

    async fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Value,
        expected: u16,
    ) -> Value {
        let (status, body) = self.home.call_api(method, path, headers, &body).await;
        assert_eq!(status, expected, "{method} {path}: {body}");
        body
    }

    /// Publishes, and waits for a response below the topic.
    async fn publish(&mut self, topic: &str, payload: Value, answer: &str) -> Value {
        self.published.insert(topic.to_owned());
        self.device
            .publish(topic, false, &payload.to_string())
            .await;
        self.next_message(answer).await
    }

    /// The next message on this topic; others are skipped.
    async fn next_message(&mut self, topic: &str) -> Value {
        let receiving = async {
            loop {
                let message = self.device.next().await;
                if message.topic == topic {
                    return serde_json::from_slice(&message.payload).unwrap_or(Value::Null);
                }
            }
        };
        soon(topic, receiving).await
    }

    /// Sends a value of the sensor `door`.
    async fn signal(&self, value: u32) {
        let signal = json!({"sensor_id": "door", "data": value});
        self.home
            .send("antumbra-signals", &signal.to_string())
            .await;
    }

    /// Items of a partition whose sort keys have this prefix.
    async fn items(&self, partition: &str, prefix: &str) -> Vec<HashMap<String, AttributeValue>> {
        let text = |text: &str| AttributeValue::S(text.to_owned());
        let found = self
            .database
            .query()
            .table_name(table_of(prefix))
            .key_condition_expression("PK = :partition AND begins_with(SK, :prefix)")
            .expression_attribute_values(":partition", text(partition))
            .expression_attribute_values(":prefix", text(prefix));
        found.send().await.unwrap().items.unwrap_or_default()
    }

    /// Writes items that an interrupted delete would have left.
    async fn put_back(&self, items: Vec<HashMap<String, AttributeValue>>) {
        for item in items {
            let sort = item["SK"].as_s().unwrap();
            let put = self.database.put_item().table_name(table_of(sort));
            put.set_item(Some(item)).send().await.unwrap();
        }
    }

    /// Calls until the response is as expected.
    async fn until(&self, path: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        eventually(path, async || {
            let (_, body) = self.home.call_api("GET", path, &[], &Value::Null).await;
            Some(body).filter(&is_so)
        })
        .await
    }
}

/// The table of items with these sort keys.
fn table_of(sort: &str) -> &'static str {
    match sort {
        "CLIENTSECRETS" => SECRETS.name,
        _ => MAIN.name,
    }
}
