//! Services on free ports, and a function whose invocations wait for the test to complete them.

use std::{future::Future, net::SocketAddr, time::Duration};

use antumbra_local::{
    clients::sdk_config,
    dynamodb::{self, DynamoDb, Storage},
    function::{Function, HandlerError},
    queues::{self, Queues},
};
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
    let server = dynamodb::start(storage, 0).await.expect("DynamoDB starts");
    let config = sdk_config(server.address());
    Tables {
        client: aws_sdk_dynamodb::Client::new(&config),
        streams: aws_sdk_dynamodbstreams::Client::new(&config),
        server,
    }
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
        self.answer("");
    }

    pub(crate) fn answer(self, response: &str) {
        self.end
            .send(Ok(response.to_owned()))
            .expect("the call waits");
    }

    /// Completes with batch item failures.
    pub(crate) fn report(self, failed: &[&str]) {
        let item = |id: &&str| json!({ "itemIdentifier": id });
        let failed: Vec<Value> = failed.iter().map(item).collect();
        self.answer(&json!({ "batchItemFailures": failed }).to_string());
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
    pub(crate) fn each(&self, pointer: &str) -> Vec<&str> {
        let text = |record| Value::pointer(record, pointer)?.as_str();
        let records = self.records().iter();
        records
            .map(|record| text(record).expect("every record has it"))
            .collect()
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

/// Sends a request to the HTTP API, and returns the status and JSON of the response.
pub(crate) async fn call_api(
    api: SocketAddr,
    method: &str,
    path: &str,
    token: &str,
    body: &str,
) -> (u16, Value) {
    let mut stream = TcpStream::connect(api).await.unwrap();
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_str(body).unwrap_or(Value::Null))
}
