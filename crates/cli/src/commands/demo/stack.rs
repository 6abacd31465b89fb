//! The in-memory stack of the demo, and its clients over HTTP, SQS and MQTT.

use std::sync::Arc;
use std::time::{Duration, Instant};

use antumbra_dynamodb::{DynamoDbShadows, MAIN, ShadowTableConfig};
use antumbra_local::clients::sdk_config;
use antumbra_local::function::Function;
use antumbra_local::stack::{Options, Stack, Webhooks};
use antumbra_registration::Registrations;
use antumbra_service::clock::ShiftedClock;
use antumbra_service::shadows::Shadows;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper::client::conn::http1::handshake;
use hyper_util::rt::TokioIo;
use rumqttc::{AsyncClient, Event, MqttOptions, Packet, QoS};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};

use super::report::{DemoFailure, DemoResult};
use crate::error::chain;

/// Registrations: two of the demo, the others as shipped.
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

/// Bearer token of the HTTP API.
const TOKEN: &str = "tour";

/// The stack and its clients.
pub(super) struct DemoStack {
    pub(super) stack: Stack,
    pub(super) shadows: Arc<Shadows<DynamoDbShadows>>,
    pub(super) sqs: aws_sdk_sqs::Client,
    /// Clock of the functions.
    pub(super) clock: ShiftedClock,
    pub(super) timeout: Timeout,
}

/// Timeout of a step.
#[derive(Debug, Clone)]
pub(super) struct Timeout {
    /// Maximum time; long, since the machine may be busy.
    pub(super) longest: Duration,
    /// Becomes true when the function given by `--break` has failed. Its result will never arrive.
    pub(super) failed: Option<watch::Receiver<bool>>,
}

impl Timeout {
    /// Time that the rest of the stack gets after a function has failed.
    const AFTER_FAILURE: Duration = Duration::from_secs(8);

    async fn elapsed(&self) {
        let failed = async {
            match self.failed.clone() {
                // The sender lives as long as the function.
                Some(mut failed) => drop(failed.wait_for(|failed| *failed).await),
                None => std::future::pending().await,
            }
            tokio::time::sleep(Timeout::AFTER_FAILURE).await;
        };
        tokio::select! {
            () = failed => {}
            () = tokio::time::sleep(self.longest) => {}
        }
    }
}

impl DemoStack {
    pub(super) async fn start(
        timeout: Timeout,
        wrap: impl Fn(Function) -> Function + Send + Sync + 'static,
    ) -> DemoResult<DemoStack> {
        let registrations = Registrations::load(REGISTRATIONS, &|_| None)
            .map_err(|error| DemoFailure::new("registrations", error))?;
        let clock = ShiftedClock::default();
        let options = Options {
            registrations,
            clock: clock.clone(),
            http_token: Some(TOKEN.to_owned()),
            webhooks: fast_retries(),
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
            timeout,
        })
    }

    /// Sends a request to the HTTP API and returns status and JSON of the response.
    pub(super) async fn http(
        &self,
        method: &str,
        path: &str,
        token: Option<&str>,
        body: &Value,
    ) -> DemoResult<(u16, Value)> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "localhost")
            .header("content-type", "application/json");
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let failed = |error: &dyn std::error::Error| DemoFailure::new(path, chain(error));
        let request = request.body(Full::<Bytes>::from(body.to_string()));
        let request = request.map_err(|error| failed(&error))?;
        let responding = async {
            let stream = TcpStream::connect(self.stack.addresses().http).await;
            let stream = TokioIo::new(stream.map_err(|error| failed(&error))?);
            let (mut sender, connection) =
                handshake(stream).await.map_err(|error| failed(&error))?;
            tokio::spawn(connection);
            let response = sender
                .send_request(request)
                .await
                .map_err(|error| failed(&error))?;
            let status = response.status().as_u16();
            let body = response
                .into_body()
                .collect()
                .await
                .map_err(|error| failed(&error))?;
            let body = serde_json::from_slice(&body.to_bytes()).unwrap_or(Value::Null);
            Ok((status, body))
        };
        self.within_timeout(&format!("a response to {method} {path}"), responding)
            .await?
    }

    /// Sends a request with the API's token.
    pub(super) async fn api(
        &self,
        method: &str,
        path: &str,
        body: Value,
    ) -> DemoResult<(u16, Value)> {
        self.http(method, path, Some(TOKEN), &body).await
    }

    /// Waits for a result until the timeout.
    pub(super) async fn within_timeout<T>(
        &self,
        what: &str,
        wait: impl Future<Output = T>,
    ) -> DemoResult<T> {
        let start = Instant::now();
        tokio::select! {
            biased;
            result = wait => Ok(result),
            () = self.timeout.elapsed() => {
                let seconds = start.elapsed().as_secs();
                Err(DemoFailure(format!("{what} did not arrive within {seconds} s")))
            }
        }
    }

    /// Sends a message to a queue.
    pub(super) async fn send(&self, queue: &str, body: &str) -> DemoResult {
        let request = self.sqs.send_message();
        let request = request.queue_url(self.stack.queue_url(queue));
        let sent = request.message_body(body).send().await;
        sent.map(drop)
            .map_err(|error| DemoFailure::new(queue, error.into_service_error()))
    }

    /// Receives and deletes the next message of a queue.
    pub(super) async fn receive(&self, queue: &str) -> DemoResult<Value> {
        let url = self.stack.queue_url(queue);
        let receiving = async {
            loop {
                let request = self.sqs.receive_message().queue_url(&url);
                let received = request.wait_time_seconds(1).send().await;
                let received =
                    received.map_err(|e| DemoFailure::new(queue, e.into_service_error()))?;
                let Some(message) = received.messages.unwrap_or_default().pop() else {
                    continue;
                };
                let request = self.sqs.delete_message().queue_url(&url);
                let request = request.set_receipt_handle(message.receipt_handle);
                let deleted = request.send().await;
                deleted.map_err(|e| DemoFailure::new(queue, e.into_service_error()))?;
                let body = message.body.unwrap_or_default();
                return serde_json::from_str(&body).map_err(|e| DemoFailure::new(queue, e));
            }
        };
        self.within_timeout(&format!("a message in {queue}"), receiving)
            .await?
    }

    /// Waits until this text is in the quarantine with a reason.
    pub(super) async fn wait_for_quarantined(&self, text: &str) -> DemoResult {
        let url = self.stack.queue_url("antumbra-quarantine");
        let receiving = async {
            loop {
                let request = self.sqs.receive_message().queue_url(&url);
                let request = request.message_attribute_names("All");
                let received = request.wait_time_seconds(1).send().await;
                let received = received.map_err(|error| {
                    DemoFailure::new("antumbra-quarantine", error.into_service_error())
                })?;
                let found = received.messages().iter().any(|message| {
                    let reason = message.message_attributes();
                    let reason = reason.and_then(|all| all.get("reason"));
                    message.body() == Some(text) && reason.is_some()
                });
                if found {
                    return Ok(());
                }
            }
        };
        self.within_timeout("a message in antumbra-quarantine", receiving)
            .await?
    }

    /// Connects a client to the broker and subscribes it.
    pub(super) async fn connect(&self, name: &str, filters: &[&str]) -> DemoResult<Device> {
        let broker = self.stack.addresses().mqtt;
        let mut options = MqttOptions::new(name, broker.ip().to_string(), broker.port());
        options.set_keep_alive(Duration::from_secs(60));
        let (client, mut connection) = AsyncClient::new(options, 10);
        let (received, messages) = mpsc::unbounded_channel();
        let (subscribed, mut subscriptions) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok(packet) = connection.poll().await {
                match packet {
                    Event::Incoming(Packet::SubAck(_)) => drop(subscribed.send(())),
                    Event::Incoming(Packet::Publish(publish)) => {
                        let payload = serde_json::from_slice(&publish.payload);
                        let payload = payload.unwrap_or(Value::Null);
                        if received.send((publish.topic, payload)).is_err() {
                            return;
                        }
                    }
                    _ => {}
                }
            }
        });
        for filter in filters {
            let request = client.subscribe(*filter, QoS::AtLeastOnce).await;
            request.map_err(|error| DemoFailure::new(filter, error))?;
            self.within_timeout(
                "the acknowledgement of the subscription",
                subscriptions.recv(),
            )
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

/// Retries after one second, so that the demo does not wait.
fn fast_retries() -> Webhooks {
    let mut webhooks = Webhooks::default();
    webhooks.policy.delays.first = Duration::from_secs(1);
    webhooks.policy.delays.longest = Duration::from_secs(1);
    webhooks
}

/// A client of the MQTT broker.
pub(super) struct Device {
    client: AsyncClient,
    messages: mpsc::UnboundedReceiver<(String, Value)>,
    /// Messages of other topics that arrived first.
    earlier: Vec<(String, Value)>,
}

impl Device {
    pub(super) async fn publish(&self, topic: &str, payload: &Value) -> DemoResult {
        let text = payload.to_string();
        let sent = self.client.publish(topic, QoS::AtLeastOnce, false, text);
        sent.await.map_err(|error| DemoFailure::new(topic, error))
    }

    /// Returns the next message of exactly this topic and keeps others for later.
    pub(super) async fn next_on(&mut self, stack: &DemoStack, topic: &str) -> DemoResult<Value> {
        if let Some(at) = self
            .earlier
            .iter()
            .position(|(earlier, _)| earlier == topic)
        {
            return Ok(self.earlier.remove(at).1);
        }
        let receiving = async {
            while let Some((received, payload)) = self.messages.recv().await {
                if received == topic {
                    return Some(payload);
                }
                self.earlier.push((received, payload));
            }
            None
        };
        stack
            .within_timeout(&format!("a message on {topic}"), receiving)
            .await?
            .ok_or_else(|| DemoFailure("the broker closed the connection".to_owned()))
    }
}
