//! Exercises everything that the functions can do, and records their AWS calls.
//!
//! One file per part of the product. Tests check that it is complete: every operation of the HTTP API, every rule, and
//! every line that calls AWS.

mod clients;
mod inbox;
mod sensors;
mod shadows;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use antumbra_local::clients::sdk_config;
use antumbra_local::stack::{Options, Stack, Webhooks};
use antumbra_registration::Registrations;
use antumbra_sensor_ingest::AutoRegistration;
use antumbra_service::clock::ShiftedClock;
use antumbra_service::deliveries::{Delays, Policy};
use antumbra_service::shadows::Layout;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::calls::Recorder;
use crate::device::v4::Device;
use crate::endpoint::Endpoints;
use crate::support::soon;

const TOKEN: &str = "let-me-in";
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
    let files = shipped.chain(own).map(|text| {
        let of: Value = serde_json::from_str(&text).unwrap();
        (format!("{}.json", of["name"].as_str().unwrap()), text)
    });
    Registrations::load(files, &|_| None).unwrap()
}

/// A stack and its clients.
pub(crate) struct Scenario {
    pub(crate) recorder: Recorder,
    stack: Stack,
    /// Unknown sensors are registered at their first signal.
    newcomers: bool,
    clock: ShiftedClock,
    endpoints: Endpoints,
    device: Device,
    sqs: aws_sdk_sqs::Client,
    database: aws_sdk_dynamodb::Client,
    /// Called methods and paths, in the notation of the OpenAPI document.
    api_calls: Arc<Mutex<BTreeSet<(String, String)>>>,
    /// Topics of published messages.
    published: BTreeSet<String>,
}

impl Scenario {
    pub(crate) async fn start(layout: Layout, newcomer: Option<AutoRegistration>) -> Scenario {
        let recorder = Recorder::default();
        let clock = ShiftedClock::default();
        let newcomers = newcomer.is_some();
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
        let stack = Stack::start(Options {
            registrations: registrations(),
            clock: clock.clone(),
            layout,
            auto_registration: newcomer,
            http_token: Some(TOKEN.to_owned()),
            http_clients: recorder.clients(),
            webhooks: Webhooks {
                policy,
                ..Webhooks::default()
            },
            ..Options::default()
        });
        let stack = stack.await.unwrap();
        let mut device = Device::new(stack.addresses().mqtt, "device").await;
        device.subscribe("response/#").await;
        device.subscribe("shadow/#").await;
        device.subscribe("notification/#").await;
        device.subscribe("changes/#").await;
        Scenario {
            recorder,
            newcomers,
            clock,
            endpoints: Endpoints::start().await,
            device,
            sqs: aws_sdk_sqs::Client::new(&sdk_config(stack.addresses().aws)),
            database: aws_sdk_dynamodb::Client::new(&sdk_config(stack.addresses().dynamodb)),
            stack,
            api_calls: Arc::default(),
            published: BTreeSet::new(),
        }
    }

    /// Runs all parts.
    pub(crate) async fn run(&mut self) {
        self.run_shadows().await;
        self.run_inbox().await;
        self.run_sensors().await;
        self.run_clients().await;
    }

    pub(crate) async fn stop(self) {
        soon("the end", self.stack.stop()).await;
    }

    /// The called operations of the API.
    pub(crate) fn api_calls(&self) -> BTreeSet<(String, String)> {
        self.api_calls.lock().unwrap().clone()
    }

    /// The topics of published messages.
    pub(crate) fn published(&self) -> &BTreeSet<String> {
        &self.published
    }

    /// Calls the API; `path` has `{}` for each of the parts.
    async fn call_api(&self, method: &str, path: &str, parts: &[&str], body: Value) -> Answer {
        let mut filled = String::new();
        let mut parts = parts.iter();
        for (number, piece) in path.split("{}").enumerate() {
            if number > 0 {
                filled.push_str(parts.next().expect("a part for each place"));
            }
            filled.push_str(piece);
        }
        let (plain, _) = path.split_once('?').unwrap_or((path, ""));
        let api_calls = (method.to_owned(), plain.to_owned());
        self.api_calls.lock().unwrap().insert(api_calls);
        self.request(method, &filled, &[], body).await
    }

    async fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Value,
    ) -> Answer {
        let body = match body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        let mut request = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
             authorization: Bearer {TOKEN}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n",
            body.len()
        );
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        let mut stream = TcpStream::connect(self.stack.addresses().http)
            .await
            .unwrap();
        let request = format!("{request}\r\n{body}");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        Answer {
            api_calls: format!("{method} {path}"),
            status: head.split(' ').nth(1).unwrap().parse().unwrap(),
            body: serde_json::from_str(body).unwrap_or(Value::Null),
        }
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
        let hearing = async {
            loop {
                let message = self.device.next().await;
                if message.topic == topic {
                    return serde_json::from_slice(&message.payload).unwrap_or(Value::Null);
                }
            }
        };
        soon(topic, hearing).await
    }

    /// Sends a text to a queue of the stack.
    async fn send(&self, queue: &str, text: &str) {
        let call = self.sqs.send_message().message_body(text);
        let call = call.queue_url(self.stack.queue_url(queue));
        call.send().await.unwrap();
    }

    /// Receives messages from a queue until one contains the text.
    async fn received(&self, queue: &str, says: &str) {
        let receiving = async {
            loop {
                let call = self.sqs.receive_message().wait_time_seconds(1);
                let call = call
                    .message_attribute_names("All")
                    .max_number_of_messages(10);
                let call = call.queue_url(self.stack.queue_url(queue));
                let received = call.send().await.unwrap();
                let changes =
                    |message: &aws_sdk_sqs::types::Message| format!("{message:?}").contains(says);
                if received.messages().iter().any(changes) {
                    return;
                }
            }
        };
        soon(&format!("{says} in {queue}"), receiving).await;
    }

    /// Calls until the response is as expected.
    async fn until(&self, path: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let api_calls = tokio::time::Instant::now();
        loop {
            let answer = self.request("GET", path, &[], Value::Null).await;
            if is_so(&answer.body) {
                return answer.body;
            }
            let patience = api_calls.elapsed() < Duration::from_secs(30);
            assert!(patience, "{path} still says {}", answer.body);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// A response of the API.
struct Answer {
    api_calls: String,
    status: u16,
    body: Value,
}

impl Answer {
    #[track_caller]
    fn is(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}: {}", self.api_calls, self.body);
        self.body
    }
}
