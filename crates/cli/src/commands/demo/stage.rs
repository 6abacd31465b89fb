//! Where the tour takes place: a stack in memory, and everybody who talks to it over the wire.

use std::sync::Arc;
use std::time::{Duration, Instant};

use antumbra_dynamodb::{DynamoDbShadows, MAIN, ShadowTableConfig};
use antumbra_local::clients::sdk_config;
use antumbra_local::function::Function;
use antumbra_local::stack::{Options, Stack, Webhooks};
use antumbra_registration::Registrations;
use antumbra_service::clock::ShiftedClock;
use antumbra_service::shadows::Shadows;
use rumqttc::{AsyncClient, Event, MqttOptions, Packet, QoS};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};

use super::story::{DemoFailure, DemoResult};
use crate::error::chain;

/// The registrations in force: two for the tour, the others as they are shipped.
const REGISTRATIONS: [(&str, &str); 5] = [
    (
        "freezer-history.json",
        r#"{"name":"freezer-history","on":{"key":"^DS#freezer#","state":"reported"},
            "send":["diff"],"to":{"sqs":{"queue":"freezer-history.fifo"}}}"#,
    ),
    (
        "freezer-alarm.json",
        r#"{"name":"freezer-alarm","on":{"key":"^DS#freezer#","state":"reported","pattern":{
            "old":{"temperature":{"value":[{"numeric":["<=",-15]}]}},
            "new":{"temperature":{"value":[{"numeric":[">",-15]}]}}}},
            "send":["old","new"],"to":{"mqtt":{"topic":"alarms/${id}"}}}"#,
    ),
    (
        "inbox-notifications.json",
        include_str!("../../../../../registrations/inbox-notifications.json"),
    ),
    (
        "shadow-delta.json",
        include_str!("../../../../../registrations/shadow-delta.json"),
    ),
    (
        "sensor-clients.json",
        include_str!("../../../../../registrations/sensor-clients.json"),
    ),
];

/// What opens the HTTP API of the stage.
const TOKEN: &str = "tour";

/// The stack and its clients.
pub(super) struct DemoStack {
    pub(super) stack: Stack,
    pub(super) shadows: Arc<Shadows<DynamoDbShadows>>,
    pub(super) sqs: aws_sdk_sqs::Client,
    /// The functions' clock.
    pub(super) clock: ShiftedClock,
    pub(super) patience: Patience,
}

/// How long anything may take before it counts as not happening.
#[derive(Debug, Clone)]
pub(super) struct Patience {
    /// At most; long, since a machine may be busy.
    pub(super) longest: Duration,
    /// Turns true when a function has failed to order. What only it could bring will not come any more.
    pub(super) failed: Option<watch::Receiver<bool>>,
}

impl Patience {
    /// How long the rest of the stack is waited for once a function has failed.
    const AFTER_FAILURE: Duration = Duration::from_secs(8);

    async fn ends(&self) {
        let failed = async {
            match self.failed.clone() {
                // The sender is gone only with the function.
                Some(mut failed) => drop(failed.wait_for(|failed| *failed).await),
                None => std::future::pending().await,
            }
            tokio::time::sleep(Patience::AFTER_FAILURE).await;
        };
        tokio::select! {
            () = failed => {}
            () = tokio::time::sleep(self.longest) => {}
        }
    }
}

impl DemoStack {
    pub(super) async fn set(
        patience: Patience,
        wrap: impl Fn(Function) -> Function + Send + Sync + 'static,
    ) -> DemoResult<DemoStack> {
        let registrations = Registrations::load(REGISTRATIONS, &|_| None)
            .map_err(|error| DemoFailure::of("registrations", error))?;
        let clock = ShiftedClock::default();
        let options = Options {
            registrations,
            clock: clock.clone(),
            http_token: Some(TOKEN.to_owned()),
            webhooks: impatient(),
            ..Options::default()
        };
        let stack = Stack::start_wrapped(options, wrap)
            .await
            .map_err(|error| DemoFailure(chain(&error)))?;
        let addresses = stack.addresses();
        let database = sdk_config(addresses.dynamodb);
        let tables = DynamoDbShadows::connect(&database, ShadowTableConfig::new(MAIN.name));
        Ok(DemoStack {
            shadows: Arc::new(Shadows::new(tables)),
            sqs: aws_sdk_sqs::Client::new(&sdk_config(addresses.aws)),
            stack,
            clock,
            patience,
        })
    }

    /// A request to the HTTP API: the status and the JSON that come back.
    pub(super) async fn ask(
        &self,
        method: &str,
        path: &str,
        token: Option<&str>,
        body: &Value,
    ) -> DemoResult<(u16, Value)> {
        let body = body.to_string();
        let mut request = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n",
            body.len()
        );
        if let Some(token) = token {
            request.push_str(&format!("authorization: Bearer {token}\r\n"));
        }
        request.push_str(&format!("\r\n{body}"));
        let asking = async {
            let mut stream = TcpStream::connect(self.stack.addresses().http).await?;
            stream.write_all(request.as_bytes()).await?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await?;
            Ok::<_, std::io::Error>(answer)
        };
        let what = format!("an answer to {method} {path}");
        let answer = self.soon(&what, asking).await?;
        let answer = answer.map_err(|error| DemoFailure::of(path, error))?;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
        let status = head.split(' ').nth(1).and_then(|text| text.parse().ok());
        Ok((
            status.unwrap_or_default(),
            serde_json::from_str(body).unwrap_or(Value::Null),
        ))
    }

    /// The same with the token that opens the API.
    pub(super) async fn api(
        &self,
        method: &str,
        path: &str,
        body: Value,
    ) -> DemoResult<(u16, Value)> {
        self.ask(method, path, Some(TOKEN), &body).await
    }

    /// Waits as long as the tour has patience.
    pub(super) async fn soon<T>(&self, what: &str, wait: impl Future<Output = T>) -> DemoResult<T> {
        let begun = Instant::now();
        tokio::select! {
            biased;
            came = wait => Ok(came),
            () = self.patience.ends() => {
                let seconds = begun.elapsed().as_secs();
                Err(DemoFailure(format!("{what} did not come within {seconds} s")))
            }
        }
    }

    /// Puts a message in a queue.
    pub(super) async fn send(&self, queue: &str, body: &str) -> DemoResult {
        let request = self.sqs.send_message();
        let request = request.queue_url(self.stack.queue_url(queue));
        let sent = request.message_body(body).send().await;
        sent.map(drop)
            .map_err(|error| DemoFailure::of(queue, error.into_service_error()))
    }

    /// Takes the next message out of a queue.
    pub(super) async fn receive(&self, queue: &str) -> DemoResult<Value> {
        let url = self.stack.queue_url(queue);
        let receiving = async {
            loop {
                let request = self.sqs.receive_message().queue_url(&url);
                let received = request.wait_time_seconds(1).send().await;
                let received =
                    received.map_err(|e| DemoFailure::of(queue, e.into_service_error()))?;
                let Some(message) = received.messages.unwrap_or_default().pop() else {
                    continue;
                };
                let request = self.sqs.delete_message().queue_url(&url);
                let request = request.set_receipt_handle(message.receipt_handle);
                let deleted = request.send().await;
                deleted.map_err(|e| DemoFailure::of(queue, e.into_service_error()))?;
                let body = message.body.unwrap_or_default();
                return serde_json::from_str(&body).map_err(|e| DemoFailure::of(queue, e));
            }
        };
        self.soon(&format!("a message in {queue}"), receiving)
            .await?
    }

    /// Waits until this text lies in the quarantine with a reason.
    pub(super) async fn quarantined(&self, text: &str) -> DemoResult {
        let url = self.stack.queue_url("antumbra-quarantine");
        let receiving = async {
            loop {
                let request = self.sqs.receive_message().queue_url(&url);
                let request = request.message_attribute_names("All");
                let received = request.wait_time_seconds(1).send().await;
                let received = received.map_err(|error| {
                    DemoFailure::of("antumbra-quarantine", error.into_service_error())
                })?;
                let lies = received.messages().iter().any(|message| {
                    let reason = message.message_attributes();
                    let reason = reason.and_then(|all| all.get("reason"));
                    message.body() == Some(text) && reason.is_some()
                });
                if lies {
                    return Ok(());
                }
            }
        };
        self.soon("a message in antumbra-quarantine", receiving)
            .await?
    }

    /// Connects somebody to the broker.
    pub(super) async fn connect(&self, name: &str, filters: &[&str]) -> DemoResult<Device> {
        let broker = self.stack.addresses().mqtt;
        let mut options = MqttOptions::new(name, broker.ip().to_string(), broker.port());
        options.set_keep_alive(Duration::from_secs(60));
        let (client, mut connection) = AsyncClient::new(options, 10);
        let (heard, messages) = mpsc::unbounded_channel();
        let (subscribed, mut subscriptions) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok(packet) = connection.poll().await {
                match packet {
                    Event::Incoming(Packet::SubAck(_)) => drop(subscribed.send(())),
                    Event::Incoming(Packet::Publish(publish)) => {
                        let payload = serde_json::from_slice(&publish.payload);
                        let payload = payload.unwrap_or(Value::Null);
                        if heard.send((publish.topic, payload)).is_err() {
                            return;
                        }
                    }
                    _ => {}
                }
            }
        });
        for filter in filters {
            let asked = client.subscribe(*filter, QoS::AtLeastOnce).await;
            asked.map_err(|error| DemoFailure::of(filter, error))?;
            self.soon("the broker's answer", subscriptions.recv())
                .await?
                .ok_or_else(|| DemoFailure(format!("{name} was disconnected")))?;
        }
        Ok(Device {
            client,
            messages,
            earlier: Vec::new(),
        })
    }
}

/// Retries that come at once: nobody waits for a tour.
fn impatient() -> Webhooks {
    let mut webhooks = Webhooks::default();
    webhooks.policy.delays.first = Duration::from_secs(1);
    webhooks.policy.delays.longest = Duration::from_secs(1);
    webhooks
}

/// Somebody on MQTT.
pub(super) struct Device {
    client: AsyncClient,
    messages: mpsc::UnboundedReceiver<(String, Value)>,
    /// What came while something else was waited for: of two topics either may be first.
    earlier: Vec<(String, Value)>,
}

impl Device {
    pub(super) async fn publish(&self, topic: &str, payload: &Value) -> DemoResult {
        let text = payload.to_string();
        let sent = self.client.publish(topic, QoS::AtLeastOnce, false, text);
        sent.await.map_err(|error| DemoFailure::of(topic, error))
    }

    /// The next message on exactly this topic; others are kept for later.
    pub(super) async fn hears(&mut self, stage: &DemoStack, topic: &str) -> DemoResult<Value> {
        if let Some(at) = self.earlier.iter().position(|(heard, _)| heard == topic) {
            return Ok(self.earlier.remove(at).1);
        }
        let hearing = async {
            while let Some((heard, payload)) = self.messages.recv().await {
                if heard == topic {
                    return Some(payload);
                }
                self.earlier.push((heard, payload));
            }
            None
        };
        stage
            .soon(&format!("a message on {topic}"), hearing)
            .await?
            .ok_or_else(|| DemoFailure("the broker closed the connection".to_owned()))
    }
}
