//! The connection to the broker.

use std::time::Duration;

use amqprs::channel::{
    BasicAckArguments, BasicConsumeArguments, BasicNackArguments, BasicQosArguments,
    BasicRejectArguments, Channel, ConsumerMessage, QueueDeclareArguments,
};
use amqprs::connection::{Connection, OpenConnectionArguments};
use amqprs::{BasicProperties, FieldTable, FieldValue};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use super::event::{Message, Properties, bytes, event};
use super::{BATCH_SIZE, BATCHING_WINDOW, EVENT_BYTES, Source};
use crate::function::Function;
use crate::listen::StartError;
use crate::task::Running;

/// Delay after a failed invocation or a lost connection; it doubles up to the longest.
const FIRST_DELAY: Duration = Duration::from_millis(200);
const LONGEST_DELAY: Duration = Duration::from_secs(30);
/// Longest queue name of the protocol.
const NAME_BYTES: usize = 255;
const CONNECT: Duration = Duration::from_secs(10);

/// Starts to consume a queue; fails if the broker cannot be used or has no such queue.
pub async fn start(source: Source, function: Function) -> Result<Running, StartError> {
    let first = Consumer::open(&source)
        .await
        .map_err(|reason| StartError::Service {
            service: "RabbitMQ",
            reason,
        })?;
    Ok(Running::start(|stop| run(source, function, first, stop)))
}

/// Consumes until the stop, and connects again when the connection is lost.
async fn run(source: Source, function: Function, first: Consumer, stop: CancellationToken) {
    let mut next = Ok(first);
    let mut delay = FIRST_DELAY;
    while !stop.is_cancelled() {
        match next {
            Ok(mut consumer) => {
                delay = FIRST_DELAY;
                let ended = consumer.consume(&source, &function, &stop).await;
                if let Err(reason) = ended {
                    tracing::warn!(broker = ?source.broker, reason, "the connection to RabbitMQ is lost");
                }
                consumer.close().await;
            }
            Err(reason) => {
                tracing::warn!(broker = ?source.broker, reason, "no connection to RabbitMQ");
            }
        }
        if stop
            .run_until_cancelled(tokio::time::sleep(delay))
            .await
            .is_none()
        {
            return;
        }
        delay = (delay * 2).min(LONGEST_DELAY);
        next = Consumer::open(&source).await;
    }
    if let Ok(consumer) = next {
        consumer.close().await;
    }
}

/// A connection that receives the messages of the queue.
struct Consumer {
    connection: Connection,
    channel: Channel,
    messages: UnboundedReceiver<ConsumerMessage>,
    /// A message that did not fit into the batch before.
    left_over: Option<(u64, Message)>,
}

impl Consumer {
    async fn open(source: &Source) -> Result<Consumer, String> {
        let opening = tokio::time::timeout(CONNECT, Consumer::try_open(source));
        let opened = opening.await.map_err(|_| "the broker does not respond")?;
        opened.map_err(|error| format!("{:?}: {error}", source.broker))
    }

    async fn try_open(source: &Source) -> Result<Consumer, String> {
        if source.queue.len() > NAME_BYTES || source.queue.is_empty() {
            return Err(format!("a queue has a name of 1 to {NAME_BYTES} bytes"));
        }
        let broker = &source.broker;
        let arguments =
            OpenConnectionArguments::new(&broker.host, broker.port, &broker.user, &broker.password)
                .virtual_host(&broker.virtual_host)
                .finish();
        let connection = Connection::open(&arguments).await.map_err(text)?;
        let channel = connection.open_channel(None).await.map_err(text)?;
        // As on AWS, the queue must exist.
        let declare = QueueDeclareArguments::new(&source.queue)
            .passive(true)
            .finish();
        if channel.queue_declare(declare).await.is_err() {
            return Err(format!(
                "the queue {} does not exist in the virtual host {}; declare it there",
                source.queue, broker.virtual_host
            ));
        }
        let prefetch = BasicQosArguments::new(0, BATCH_SIZE, false);
        channel.basic_qos(prefetch).await.map_err(text)?;
        let consume = BasicConsumeArguments::new(&source.queue, "");
        let consuming = channel.basic_consume_rx(consume).await;
        let (_, messages) = consuming.map_err(text)?;
        Ok(Consumer {
            connection,
            channel,
            messages,
            left_over: None,
        })
    }

    /// Hands batches to the function until the stop. An error is a lost connection.
    async fn consume(
        &mut self,
        source: &Source,
        function: &Function,
        stop: &CancellationToken,
    ) -> Result<(), String> {
        let mut delay = FIRST_DELAY;
        loop {
            let batch = stop.run_until_cancelled(self.batch()).await;
            let Some(batch) = batch.transpose()? else {
                return Ok(());
            };
            let Some(last) = batch.last().map(|(tag, _)| *tag) else {
                continue;
            };
            let messages: Vec<Message> = batch.into_iter().map(|(_, message)| message).collect();
            let event = event(&source.queue, &source.broker.virtual_host, &messages);
            match function.invoke(event).await {
                Ok(_) => {
                    let all = BasicAckArguments::new(last, true);
                    self.channel.basic_ack(all).await.map_err(text)?;
                    delay = FIRST_DELAY;
                }
                Err(error) => {
                    tracing::warn!(function = function.name(), %error, "the batch returns to RabbitMQ");
                    // The messages stay with this consumer meanwhile, so that it does not spin.
                    stop.run_until_cancelled(tokio::time::sleep(delay)).await;
                    delay = (delay * 2).min(LONGEST_DELAY);
                    let all = BasicNackArguments::new(last, true, true);
                    self.channel.basic_nack(all).await.map_err(text)?;
                }
            }
        }
    }

    /// The next batch, with the delivery tag of each message.
    async fn batch(&mut self) -> Result<Vec<(u64, Message)>, String> {
        let first = match self.left_over.take() {
            Some(message) => message,
            None => self.next().await?,
        };
        if bytes(&first.1) > EVENT_BYTES {
            tracing::error!(
                "a message is too large for an event and goes to the dead letters of its queue"
            );
            let reject = BasicRejectArguments::new(first.0, false);
            self.channel.basic_reject(reject).await.map_err(text)?;
            return Ok(Vec::new());
        }
        let mut size = bytes(&first.1);
        let mut batch = vec![first];
        let end = Instant::now() + BATCHING_WINDOW;
        while batch.len() < usize::from(BATCH_SIZE) {
            let Ok(next) = timeout_at(end, self.next()).await else {
                break;
            };
            let next = next?;
            size += bytes(&next.1);
            if size > EVENT_BYTES {
                self.left_over = Some(next);
                break;
            }
            batch.push(next);
        }
        Ok(batch)
    }

    async fn next(&mut self) -> Result<(u64, Message), String> {
        loop {
            let message = self.messages.recv().await.ok_or("the channel is closed")?;
            if let Some(deliver) = message.deliver {
                let delivered = Message {
                    properties: message.basic_properties.map(properties).unwrap_or_default(),
                    redelivered: deliver.redelivered(),
                    body: message.content.unwrap_or_default(),
                };
                return Ok((deliver.delivery_tag(), delivered));
            }
        }
    }

    /// Closes the connection. Messages that are not acknowledged return to the queue.
    async fn close(self) {
        let _ = tokio::time::timeout(Duration::from_secs(1), self.connection.close()).await;
    }
}

fn text(error: amqprs::error::Error) -> String {
    error.to_string()
}

fn properties(of: BasicProperties) -> Properties {
    let owned = |text: Option<&String>| text.cloned();
    Properties {
        content_type: owned(of.content_type()),
        content_encoding: owned(of.content_encoding()),
        headers: of.headers().map(headers).unwrap_or_default(),
        delivery_mode: of.delivery_mode(),
        priority: of.priority(),
        correlation_id: owned(of.correlation_id()),
        reply_to: owned(of.reply_to()),
        expiration: owned(of.expiration()),
        message_id: owned(of.message_id()),
        timestamp: of.timestamp(),
        message_type: owned(of.message_type()),
        user_id: owned(of.user_id()),
        app_id: owned(of.app_id()),
        cluster_id: owned(of.cluster_id()),
    }
}

fn headers(table: &FieldTable) -> Map<String, Value> {
    let table: &std::collections::HashMap<_, _> = table.as_ref();
    let header = |(name, value): (&amqprs::ShortStr, &FieldValue)| {
        let name: &String = name.as_ref();
        (name.clone(), value_of(value))
    };
    table.iter().map(header).collect()
}

/// Texts are bytes in Lambda's events.
fn value_of(value: &FieldValue) -> Value {
    match value {
        FieldValue::t(value) => json!(value),
        FieldValue::b(value) => json!(value),
        FieldValue::B(value) => json!(value),
        FieldValue::s(value) => json!(value),
        FieldValue::u(value) => json!(value),
        FieldValue::I(value) => json!(value),
        FieldValue::i(value) => json!(value),
        FieldValue::l(value) => json!(value),
        FieldValue::f(value) => json!(value),
        FieldValue::d(value) => json!(value),
        FieldValue::T(value) => json!(value),
        FieldValue::S(value) => {
            let text: &String = value.as_ref();
            json!({ "bytes": text.as_bytes() })
        }
        FieldValue::F(table) => Value::Object(headers(table)),
        _ => Value::Null,
    }
}
