//! The in-memory stack of the demo, and its clients over HTTP, SQS and MQTT.

use std::sync::Arc;
use std::time::Duration;

use antumbra_dynamodb::{DynamoDbShadows, MAIN, ShadowTableConfig};
use antumbra_local::clients::sdk_config;
use antumbra_local::function::Function;
use antumbra_local::stack::{Options, Settings, Stack};
use antumbra_notify::files;
use antumbra_registration::Registrations;
use antumbra_service::clock::ShiftedClock;
use antumbra_service::shadows::Shadows;
use antumbra_wire::topic_prefix::TopicPrefix;
use aws_sdk_sqs::types::Message;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper::client::conn::http1::handshake;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::Instant;

use super::report::{DemoFailure, DemoResult};
use crate::error::chain;
use crate::mqtt::{Broker, Session, new_client_id};

/// Registrations of the demo, beside the shipped ones.
const REGISTRATIONS: [(&str, &str); 2] = [
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
];

const TOKEN: &str = "tour";
/// Grant of the second token of the HTTP API.
pub(super) const GRANT: &str = "shadows:read:acme:";
/// Duration of an MQTT session: longer than the demo.
const SESSION: Duration = Duration::from_secs(3600);

pub(super) struct DemoStack {
    pub(super) stack: Stack,
    pub(super) shadows: Arc<Shadows<DynamoDbShadows>>,
    pub(super) sqs: aws_sdk_sqs::Client,
    /// Clock of the functions.
    pub(super) clock: ShiftedClock,
    pub(super) timeout: Timeout,
    topic_prefix: TopicPrefix,
}

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
        topic_prefix: &TopicPrefix,
        wrap: impl Fn(Function) -> Function + Send + Sync + 'static,
    ) -> DemoResult<DemoStack> {
        let files = REGISTRATIONS.into_iter().chain(files::SHIPPED);
        let registrations = Registrations::load(files, &|_| None)
            .map_err(|error| DemoFailure::new("registrations", error))?;
        let clock = ShiftedClock::default();
        let options = Options {
            registrations,
            settings: Settings::from([
                ("TOPIC_PREFIX", &topic_prefix.to_string()[..]),
                // Retries and silence are shown within seconds.
                ("RETRY_FIRST_SECONDS", "1"),
                ("RETRY_LONGEST_SECONDS", "1"),
                ("GRACE_SECONDS", "0.2"),
            ]),
            clock: clock.clone(),
            http_token: Some(TOKEN.to_owned()),
            http_grants: GRANT.parse().into_iter().collect(),
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
            topic_prefix: topic_prefix.clone(),
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

    pub(super) async fn api(
        &self,
        method: &str,
        path: &str,
        body: Value,
    ) -> DemoResult<(u16, Value)> {
        self.http(method, path, Some(TOKEN), &body).await
    }

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

    pub(super) async fn send(&self, queue: &str, body: &str) -> DemoResult {
        let request = self.sqs.send_message();
        let request = request.queue_url(self.stack.queue_url(queue));
        let sent = request.message_body(body).send().await;
        sent.map(drop)
            .map_err(|error| DemoFailure::new(queue, error.into_service_error()))
    }

    /// Receives and deletes the next message of a queue.
    pub(super) async fn receive(&self, queue: &str) -> DemoResult<Value> {
        let found = |message: &Message| {
            let body = serde_json::from_str(message.body()?);
            Some((body, message.receipt_handle()?.to_owned()))
        };
        let (body, receipt) = self.find(queue, found).await?;
        let request = self
            .sqs
            .delete_message()
            .queue_url(self.stack.queue_url(queue));
        let deleted = request.receipt_handle(receipt).send().await;
        deleted.map_err(|error| DemoFailure::new(queue, error.into_service_error()))?;
        body.map_err(|error| DemoFailure::new(queue, error))
    }

    /// Waits until this text is in the quarantine with a reason.
    pub(super) async fn wait_for_quarantined(&self, text: &str) -> DemoResult {
        self.find("antumbra-quarantine", |message| {
            let has_reason = message.message_attributes()?.contains_key("reason");
            (message.body() == Some(text) && has_reason).then_some(())
        })
        .await
    }

    /// Receives messages of a queue until one is the wanted one.
    async fn find<T>(&self, queue: &str, wanted: impl Fn(&Message) -> Option<T>) -> DemoResult<T> {
        let url = self.stack.queue_url(queue);
        let receiving = async {
            loop {
                let request = self.sqs.receive_message().queue_url(&url);
                let request = request.message_attribute_names("All");
                let received = request.wait_time_seconds(1).send().await;
                let received = received
                    .map_err(|error| DemoFailure::new(queue, error.into_service_error()))?;
                if let Some(found) = received.messages().iter().find_map(&wanted) {
                    return Ok(found);
                }
            }
        };
        self.within_timeout(&format!("a message in {queue}"), receiving)
            .await?
    }

    pub(super) async fn connect(&self, filters: &[&str]) -> DemoResult<Device> {
        let broker = Broker::Tcp(self.stack.addresses().mqtt.to_string());
        let mut session =
            Session::open(&broker, &new_client_id(), &self.topic_prefix, SESSION).await?;
        for filter in filters {
            let subscribing = session.subscribe(filter);
            self.within_timeout("the acknowledgement of the subscription", subscribing)
                .await??;
        }
        Ok(Device {
            session,
            earlier: Vec::new(),
        })
    }
}

/// Retries after one second, so that the demo does not wait.
pub(super) struct Device {
    session: Session,
    /// Messages of other topics that arrived first.
    earlier: Vec<(String, Value)>,
}

impl Device {
    pub(super) async fn publish(&mut self, topic: &str, payload: &Value) -> DemoResult {
        Ok(self.session.publish(topic, &payload.to_string()).await?)
    }

    /// Returns the next message of exactly this topic and keeps others for later.
    pub(super) async fn next_on(&mut self, stack: &DemoStack, topic: &str) -> DemoResult<Value> {
        let mut earlier = self.earlier.iter();
        if let Some(at) = earlier.position(|(earlier, _)| earlier == topic) {
            return Ok(self.earlier.remove(at).1);
        }
        let receiving = async {
            loop {
                let until = Instant::now() + SESSION;
                let Some(message) = self.session.next(until).await? else {
                    continue;
                };
                let payload = serde_json::from_slice(&message.payload).unwrap_or(Value::Null);
                if message.topic == topic {
                    return Ok(payload);
                }
                self.earlier.push((message.topic, payload));
            }
        };
        stack
            .within_timeout(&format!("a message on {topic}"), receiving)
            .await?
    }
}
