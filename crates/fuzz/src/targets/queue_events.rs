//! Events of SQS and RabbitMQ, compared with serde_json; then each of their messages.

use antumbra_shadow::Timestamp;
use antumbra_wire::events::sqs::QueueMessage;
use antumbra_wire::events::{rabbitmq, sqs};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::queue_messages;

pub(crate) fn run(bytes: &[u8]) {
    // Skipped values may be invalid for serde_json, such as an endless number.
    let plain = serde_json::from_slice::<Value>(bytes).ok();
    if let Ok(messages) = sqs::read(bytes) {
        if let Some(records) = plain.as_ref().and_then(|event| event["Records"].as_array()) {
            assert_eq!(messages.len(), records.len());
            for (message, record) in messages.iter().zip(records) {
                sqs_message(message, record);
            }
        }
        for message in &messages {
            queue_messages::check(&message.body, &message.id, message.sent);
        }
    }
    if let Ok(messages) = rabbitmq::read(bytes) {
        assert!(rabbitmq::is_event(bytes));
        assert_eq!(rabbitmq::read(bytes).as_ref(), Ok(&messages));
        if let Some(plain) = &plain {
            rabbit_messages(&messages, &plain["rmqMessagesByQueue"]);
        }
        for message in &messages {
            if let Ok(text) = &message.body {
                queue_messages::check(text, &message.id, Default::default());
            }
        }
    }
}

fn sqs_message(message: &QueueMessage, record: &Value) {
    // serde reads a list in place of an object by position; AWS sends none.
    let Some(attributes) = record["attributes"]
        .as_object()
        .filter(|_| record.is_object())
    else {
        return;
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let attribute = |name: &str| attributes.get(name).and_then(Value::as_str);
    assert_eq!(message.id, text(&record["messageId"]));
    assert_eq!(message.receipt, text(&record["receiptHandle"]));
    assert_eq!(message.body, text(&record["body"]));
    assert_eq!(message.queue_arn, text(&record["eventSourceARN"]));
    let sent: i128 = attribute("SentTimestamp").unwrap().parse().unwrap();
    assert_eq!(message.sent, Timestamp::from_nanoseconds(sent * 1_000_000));
    let receives = attribute("ApproximateReceiveCount").and_then(|count| count.parse().ok());
    assert_eq!(message.receives, receives.unwrap_or(1));
    let fifo = message.queue_arn.ends_with(".fifo");
    let group = attribute("MessageGroupId").filter(|_| fifo);
    assert_eq!(message.group.as_deref(), group);
}

fn rabbit_messages(messages: &[rabbitmq::RabbitMessage], queues: &Value) {
    let Some(queues) = queues.as_object() else {
        return;
    };
    let of_queue = |(queue, list): (&String, &Value)| {
        let list = list.as_array().unwrap().clone();
        list.into_iter()
            .map(|one| (queue.clone(), one))
            .collect::<Vec<_>>()
    };
    let mut plain: Vec<(String, Value)> = queues.iter().flat_map(of_queue).collect();
    plain.sort_by(|one, other| one.0.cmp(&other.0));
    assert_eq!(messages.len(), plain.len());
    for (message, (queue, plain)) in messages.iter().zip(plain) {
        assert_eq!(message.queue, queue);
        assert!(!message.id.is_empty());
        let Some(coded) = plain["data"].as_str() else {
            continue;
        };
        match &message.body {
            Ok(text) => assert_eq!(STANDARD.encode(text), coded),
            Err(not_text) => {
                assert_eq!(not_text.0, coded);
                let bytes = STANDARD.decode(coded);
                assert!(!bytes.is_ok_and(|bytes| std::str::from_utf8(&bytes).is_ok()));
            }
        }
        if let Some(id) = plain["basicProperties"]["messageId"]
            .as_str()
            .filter(|id| !id.is_empty())
        {
            assert_eq!(message.id, id);
        }
    }
}
