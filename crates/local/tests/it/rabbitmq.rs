//! RabbitMQ as event source, with a real broker: `scripts/check-rabbitmq` starts one.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use amqprs::BasicProperties;
use amqprs::channel::{
    BasicPublishArguments, Channel, QueueDeclareArguments, QueueDeleteArguments,
};
use amqprs::connection::{Connection, OpenConnectionArguments};
use antumbra_local::function::{Function, HandlerError};
use antumbra_local::rabbitmq::{Broker, Source, start};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::Value;

use crate::support::{eventually, soon};

struct Queue {
    _connection: Connection,
    channel: Channel,
    source: Source,
}

impl Queue {
    async fn declare(name: &str) -> Queue {
        let url = std::env::var("ANTUMBRA_TEST_RABBITMQ").expect("run scripts/check-rabbitmq");
        let broker: Broker = url.parse().unwrap();
        let arguments =
            OpenConnectionArguments::new(&broker.host, broker.port, &broker.user, &broker.password);
        let connection = Connection::open(&arguments).await.unwrap();
        let channel = connection.open_channel(None).await.unwrap();
        let _ = channel.queue_delete(QueueDeleteArguments::new(name)).await;
        let declared = QueueDeclareArguments::durable_client_named(name);
        channel.queue_declare(declared).await.unwrap();
        Queue {
            _connection: connection,
            channel,
            source: Source {
                broker,
                queue: name.to_owned(),
            },
        }
    }

    async fn send(&self, body: &str) {
        let to = BasicPublishArguments::new("", &self.source.queue);
        let properties = BasicProperties::default().with_message_id(body).finish();
        let sent = self.channel.basic_publish(properties, body.into(), to);
        sent.await.unwrap();
    }

    /// Messages in the queue that no consumer has.
    async fn waiting(&self) -> u32 {
        let passive = QueueDeclareArguments::new(&self.source.queue)
            .passive(true)
            .finish();
        self.channel
            .queue_declare(passive)
            .await
            .unwrap()
            .unwrap()
            .1
    }
}

/// Events of a function, which fails as long as `failures` is not 0.
#[derive(Clone, Default)]
struct Recorded {
    events: Arc<Mutex<Vec<Value>>>,
    failures: Arc<Mutex<u32>>,
}

impl Recorded {
    fn function(&self) -> Function {
        let recorded = self.clone();
        Function::new(
            "sensor-ingest",
            Duration::from_secs(10),
            move |event: Bytes| {
                let event = serde_json::from_slice(&event).unwrap();
                recorded.events.lock().unwrap().push(event);
                let mut failures = recorded.failures.lock().unwrap();
                let fails = *failures > 0;
                *failures = failures.saturating_sub(1);
                async move {
                    match fails {
                        true => Err(HandlerError("on purpose".to_owned())),
                        false => Ok(Bytes::new()),
                    }
                }
            },
        )
    }

    /// Bodies and redelivery flags of each event.
    fn batches(&self, queue: &str) -> Vec<Vec<(String, bool)>> {
        let events = self.events.lock().unwrap();
        let messages = |event: &Value| {
            let messages = event["rmqMessagesByQueue"][format!("{queue}::/")].as_array();
            let messages = messages.unwrap().iter();
            let message = |message: &Value| {
                let data = STANDARD.decode(message["data"].as_str().unwrap()).unwrap();
                let body = String::from_utf8(data).unwrap();
                assert_eq!(message["basicProperties"]["messageId"], body);
                (body, message["redelivered"].as_bool().unwrap())
            };
            messages.map(message).collect()
        };
        events.iter().map(messages).collect()
    }
}

#[tokio::test]
async fn batches_are_acknowledged_after_the_function_has_succeeded() {
    let queue = Queue::declare("antumbra-test-batches").await;
    for n in 0..25 {
        queue.send(&format!("m{n}")).await;
    }
    let recorded = Recorded::default();
    let running = start(queue.source.clone(), recorded.function())
        .await
        .unwrap();
    let batches = eventually("all messages", async || {
        let batches = recorded.batches("antumbra-test-batches");
        (batches.iter().map(Vec::len).sum::<usize>() >= 25).then_some(batches)
    })
    .await;
    let sizes: Vec<usize> = batches.iter().map(Vec::len).collect();
    assert_eq!(sizes, [10, 10, 5]);
    let bodies: Vec<String> = batches
        .into_iter()
        .flatten()
        .map(|(body, _)| body)
        .collect();
    let expected: Vec<String> = (0..25).map(|n| format!("m{n}")).collect();
    assert_eq!(bodies, expected);
    soon("the end", running.stop()).await;
    // Acknowledged messages do not return when their consumer leaves.
    assert_eq!(queue.waiting().await, 0);
}

#[tokio::test]
async fn a_failed_batch_is_delivered_again() {
    let queue = Queue::declare("antumbra-test-failures").await;
    for n in 0..3 {
        queue.send(&format!("m{n}")).await;
    }
    let recorded = Recorded::default();
    *recorded.failures.lock().unwrap() = 2;
    let running = start(queue.source.clone(), recorded.function())
        .await
        .unwrap();
    let batches = eventually("the third invocation", async || {
        let batches = recorded.batches("antumbra-test-failures");
        (batches.len() >= 3).then_some(batches)
    })
    .await;
    let expected = |redelivered: bool| {
        let message = |n: u32| (format!("m{n}"), redelivered);
        (0..3).map(message).collect::<Vec<_>>()
    };
    assert_eq!(batches, [expected(false), expected(true), expected(true)]);
    soon("the end", running.stop()).await;
    assert_eq!(queue.waiting().await, 0);
}

#[tokio::test]
async fn messages_return_to_the_queue_if_the_stack_stops_before_they_are_acknowledged() {
    let queue = Queue::declare("antumbra-test-stop").await;
    queue.send("m0").await;
    let recorded = Recorded::default();
    *recorded.failures.lock().unwrap() = u32::MAX;
    let running = start(queue.source.clone(), recorded.function())
        .await
        .unwrap();
    eventually("an invocation", async || {
        (!recorded.batches("antumbra-test-stop").is_empty()).then_some(())
    })
    .await;
    soon("the end", running.stop()).await;
    eventually("its return", async || {
        (queue.waiting().await == 1).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_missing_queue_and_a_missing_broker_are_named() {
    let queue = Queue::declare("antumbra-test-missing").await;
    let missing = Source {
        queue: "antumbra-test-nowhere".to_owned(),
        ..queue.source.clone()
    };
    let error = start(missing, Recorded::default().function())
        .await
        .unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("the queue antumbra-test-nowhere does not exist"),
        "{text}"
    );
    let elsewhere = Source {
        broker: "amqp://127.0.0.1:1".parse().unwrap(),
        ..queue.source
    };
    let error = start(elsewhere, Recorded::default().function())
        .await
        .unwrap_err();
    let text = error.to_string();
    assert!(text.contains("amqp://127.0.0.1:1"), "{text}");
}
