//! Services on free ports, and a function whose invocations wait for the test to complete them.

use std::{future::Future, net::SocketAddr, time::Duration};

use antumbra_dynamodb::MAIN;
use antumbra_local::{
    clients::sdk_config,
    dynamodb::{self, DynamoDb, Storage},
    function::{Function, HandlerError},
    queues::{self, Queues},
    stack::{Options, Settings, Stack},
};
use antumbra_registration::Registrations;
use antumbra_service::sensors::{
    Generation, Location, RegisteredSensor, Sensor, SensorId, Version,
};
use antumbra_service::shadows::Layout;
use antumbra_shadow::Timestamp;
use aws_sdk_dynamodb::types::AttributeValue;
use aws_sdk_sqs::types::{Message, MessageSystemAttributeName};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::{mpsc, oneshot},
};

/// Waits for a future, and fails the test after 30 seconds.
pub(crate) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), future)
        .await
        .unwrap_or_else(|_| panic!("{what} did not happen"))
}

/// Polls until there is a result.
pub(crate) async fn eventually<T>(what: &str, mut poll: impl AsyncFnMut() -> Option<T>) -> T {
    let polling = async {
        loop {
            if let Some(found) = poll().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    soon(what, polling).await
}

pub(crate) struct Tables {
    pub(crate) server: DynamoDb,
    pub(crate) client: aws_sdk_dynamodb::Client,
    pub(crate) streams: aws_sdk_dynamodbstreams::Client,
}

pub(crate) async fn tables(storage: Storage) -> Tables {
    Tables::of(dynamodb::start(storage, 0).await.expect("DynamoDB starts"))
}

impl Tables {
    pub(crate) fn of(server: DynamoDb) -> Tables {
        let config = sdk_config(server.address());
        Tables {
            client: aws_sdk_dynamodb::Client::new(&config),
            streams: aws_sdk_dynamodbstreams::Client::new(&config),
            server,
        }
    }

    /// Puts an item with this sort key and these numbers into the main table.
    pub(crate) async fn put(&self, sort: &str, numbers: &[(&str, &str)]) {
        let put = self.client.put_item().table_name(MAIN.name);
        let mut put = put.item("PK", text("p")).item("SK", text(sort));
        for (name, number) in numbers {
            put = put.item(*name, AttributeValue::N((*number).to_owned()));
        }
        put.send().await.unwrap();
    }
}

pub(crate) fn text(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

/// Sends a raw HTTP request with `connection: close` and returns the raw response.
pub(crate) async fn exchange(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    let read = stream.read_to_string(&mut response);
    soon("a response", read).await.unwrap();
    response
}

pub(crate) async fn queues() -> (Queues, aws_sdk_sqs::Client) {
    let queues = queues::start(0).await.expect("SQS and SNS start");
    let client = aws_sdk_sqs::Client::new(&sdk_config(queues.address()));
    (queues, client)
}

/// A running invocation.
pub(crate) struct Call {
    pub(crate) event: Value,
    end: oneshot::Sender<Result<String, String>>,
}

impl Call {
    pub(crate) fn succeed(self) {
        self.respond("");
    }

    pub(crate) fn respond(self, response: &str) {
        self.end
            .send(Ok(response.to_owned()))
            .expect("the call waits");
    }

    /// Completes with batch item failures.
    pub(crate) fn report<T: AsRef<str>>(self, failed: &[T]) {
        let item = |id: &T| json!({ "itemIdentifier": id.as_ref() });
        let failed: Vec<Value> = failed.iter().map(item).collect();
        self.respond(&json!({ "batchItemFailures": failed }).to_string());
    }

    /// Completes with a function error.
    pub(crate) fn fail(self) {
        self.end
            .send(Err("to order".to_owned()))
            .expect("the call waits");
    }

    pub(crate) fn records(&self) -> &[Value] {
        self.event["Records"].as_array().expect("a batch")
    }

    /// Returns a field of every record, by JSON pointer.
    pub(crate) fn each(&self, pointer: &str) -> Vec<String> {
        let text = |record: &Value| Some(record.pointer(pointer)?.as_str()?.to_owned());
        let all: Option<_> = self.records().iter().map(text).collect();
        all.expect("every record has it")
    }
}

/// Invocations of a function made by [`function`].
pub(crate) struct Calls(mpsc::UnboundedReceiver<Call>);

impl Calls {
    pub(crate) async fn next(&mut self) -> Call {
        let call = soon("a call", self.0.recv()).await;
        call.expect("the function is still there")
    }

    /// Returns whether no other invocation is running.
    pub(crate) fn none_waits(&mut self) -> bool {
        self.0.try_recv().is_err()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A function whose invocations the test completes one by one.
pub(crate) fn function(name: &str) -> (Function, Calls) {
    let (calls, receiver) = mpsc::unbounded_channel();
    let function = Function::new(name, Duration::from_secs(20), move |event| {
        let (end, ended) = oneshot::channel();
        let event = serde_json::from_slice(&event).expect("an event is JSON");
        let gone = calls.send(Call { event, end }).is_err();
        async move {
            assert!(!gone, "a call that no test waits for");
            match ended.await {
                Ok(Ok(response)) => Ok(response.into()),
                Ok(Err(reason)) => Err(HandlerError(reason)),
                Err(_) => panic!("the test dropped the call"),
            }
        }
    });
    (function, Calls(receiver))
}

/// Bearer token of the HTTP API.
pub(crate) const TOKEN: &str = "let-me-in";

/// A running stack, and a client of its queues.
pub(crate) struct Home {
    pub(crate) stack: Stack,
    pub(crate) sqs: aws_sdk_sqs::Client,
}

/// Settings of a layout.
pub(crate) fn settings(layout: Layout) -> Settings {
    let is_combined = layout == Layout::Combined;
    Settings::from([("COMBINED", &is_combined.to_string()[..])])
}

impl Home {
    /// Starts a stack whose sweep waits only shortly for signals that were overtaken.
    pub(crate) async fn start(options: Options) -> Home {
        let options = Options {
            settings: options.settings.with("GRACE_SECONDS", "0.2"),
            ..options
        };
        Home::of(Stack::start(options).await.unwrap())
    }

    pub(crate) fn of(stack: Stack) -> Home {
        let sqs = aws_sdk_sqs::Client::new(&sdk_config(stack.addresses().aws));
        Home { stack, sqs }
    }

    /// Starts a stack whose HTTP API takes [`TOKEN`].
    pub(crate) async fn with_api(options: Options) -> Home {
        let http_token = Some(TOKEN.to_owned());
        Home::start(Options {
            http_token,
            ..options
        })
        .await
    }

    /// Returns the configuration of clients of DynamoDB.
    pub(crate) fn database(&self) -> aws_types::SdkConfig {
        sdk_config(self.stack.addresses().dynamodb)
    }

    pub(crate) async fn stop(self) {
        soon("the end", self.stack.stop()).await;
    }

    pub(crate) async fn device(&self, id: &str) -> crate::device::v4::Device {
        crate::device::v4::Device::new(self.stack.addresses().mqtt, id).await
    }

    /// Sends a message and returns its id.
    pub(crate) async fn send(&self, queue: &str, text: &str) -> String {
        let call = self.sqs.send_message().message_body(text);
        let call = call.queue_url(self.stack.queue_url(queue));
        call.send().await.unwrap().message_id.unwrap()
    }

    /// Receives and deletes up to ten messages, and waits this many seconds for the first.
    pub(crate) async fn receive(&self, queue: &str, seconds: i32) -> Vec<Message> {
        let url = self.stack.queue_url(queue);
        let call = self.sqs.receive_message().queue_url(&url);
        let call = call
            .max_number_of_messages(10)
            .wait_time_seconds(seconds)
            .message_attribute_names("All")
            .message_system_attribute_names(MessageSystemAttributeName::All);
        let received = call.send().await.unwrap().messages.unwrap_or_default();
        for message in &received {
            let call = self.sqs.delete_message().queue_url(&url);
            let call = call.set_receipt_handle(message.receipt_handle.clone());
            call.send().await.unwrap();
        }
        received
    }

    /// Receives messages until one contains this text.
    pub(crate) async fn received(&self, queue: &str, text: &str) -> Message {
        eventually(&format!("{text} in {queue}"), async || {
            let received = self.receive(queue, 1).await.into_iter();
            let mut matching = received.filter(|one| format!("{one:?}").contains(text));
            matching.next()
        })
        .await
    }

    /// Gets a resource of the HTTP API.
    pub(crate) async fn get(&self, path: &str) -> Value {
        self.call_api("GET", path, &[], &Value::Null).await.1
    }

    /// Calls the HTTP API, and returns the status and JSON of the response.
    pub(crate) async fn call_api(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> (u16, Value) {
        let body = match body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        let mut request = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n",
            body.len()
        );
        let token = ("authorization", &*format!("Bearer {TOKEN}"));
        let given = headers.iter().any(|(name, _)| *name == token.0);
        for (name, value) in headers
            .iter()
            .chain([&token].into_iter().filter(|_| !given))
        {
            request += &format!("{name}: {value}\r\n");
        }
        let request = format!("{request}\r\n{body}");
        let response = exchange(self.stack.addresses().http, &request).await;
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap_or(Value::Null))
    }
}

/// Registrations from the texts of their files.
pub(crate) fn registrations<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Registrations {
    let texts = texts.into_iter().enumerate();
    let files = texts.map(|(at, text)| (format!("{at}.json"), text.as_ref().to_owned()));
    Registrations::load(files, &|_| None).unwrap()
}

/// A new sensor.
pub(crate) fn sensor(id: &str, registered_at: Timestamp) -> RegisteredSensor {
    let location = Location::new("Poznań", "A", "2", "13").unwrap();
    RegisteredSensor {
        sensor: Sensor::new(SensorId::new(id).unwrap(), location),
        version: Version(1),
        registered_at,
        generation: Generation::new("g1").unwrap(),
    }
}
