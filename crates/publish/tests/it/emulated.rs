//! Channels against emulated queues and topics: those of the local stack, or of the emulator at the URL in
//! `ANTUMBRA_AWS_ENDPOINT`.

use std::collections::{BTreeMap, HashSet};

use antumbra_publish::{SnsChannel, SqsChannel, group_id};
use antumbra_service::notifications::{Channel, Message};
use aws_sdk_sqs::types::{MessageSystemAttributeName, QueueAttributeName};
use serde_json::Value;

use crate::message::{letters, message, messages, reason, send_all};
use crate::scripted::config;

const ENDPOINT: &str = "ANTUMBRA_AWS_ENDPOINT";

/// Clients of both services, and the local stack if it serves them.
struct Stack {
    sqs: aws_sdk_sqs::Client,
    sns: aws_sdk_sns::Client,
    _local: Option<antumbra_local::queues::Queues>,
}

impl Stack {
    async fn start() -> Stack {
        let (endpoint, local) = match std::env::var(ENDPOINT) {
            Ok(endpoint) => (endpoint, None),
            Err(_) => {
                let local = antumbra_local::queues::start(0).await.unwrap();
                (format!("http://{}", local.address()), Some(local))
            }
        };
        let config = config(&endpoint);
        Stack {
            sqs: aws_sdk_sqs::Client::new(&config),
            sns: aws_sdk_sns::Client::new(&config),
            _local: local,
        }
    }

    /// Creates a queue; returns its URL and ARN.
    async fn queue(&self, name: &str) -> (String, String) {
        let mut call = self.sqs.create_queue().queue_name(name);
        if name.ends_with(".fifo") {
            call = call.attributes(QueueAttributeName::FifoQueue, "true");
        }
        let url = call.send().await.unwrap().queue_url.unwrap();
        let arn = QueueAttributeName::QueueArn;
        let call = self.sqs.get_queue_attributes().queue_url(&url);
        let known = call.attribute_names(arn.clone()).send().await.unwrap();
        let arn = known.attributes.unwrap().remove(&arn).unwrap();
        (url, arn)
    }

    async fn topic(&self, name: &str) -> String {
        let mut call = self.sns.create_topic().name(name);
        if name.ends_with(".fifo") {
            call = call.attributes("FifoTopic", "true");
        }
        call.send().await.unwrap().topic_arn.unwrap()
    }

    async fn subscribe(&self, topic: &str, queue_arn: &str, filter: Option<&str>) {
        let call = self.sns.subscribe().topic_arn(topic).protocol("sqs");
        let mut call = call
            .endpoint(queue_arn)
            .attributes("RawMessageDelivery", "true");
        if let Some(filter) = filter {
            call = call.attributes("FilterPolicy", filter);
        }
        call.send().await.unwrap();
    }

    /// Receives all messages of a queue.
    async fn drain(&self, url: &str) -> Vec<aws_sdk_sqs::types::Message> {
        let mut all = Vec::new();
        loop {
            let call = self.sqs.receive_message().queue_url(url);
            let call = call
                .max_number_of_messages(10)
                .message_attribute_names("All");
            let call = call.message_system_attribute_names(MessageSystemAttributeName::All);
            let got = call.send().await.unwrap().messages.unwrap_or_default();
            if got.is_empty() {
                return all;
            }
            for message in got {
                let call = self.sqs.delete_message().queue_url(url);
                let call = call.receipt_handle(message.receipt_handle().unwrap());
                call.send().await.unwrap();
                all.push(message);
            }
        }
    }
}

fn bodies(messages: &[aws_sdk_sqs::types::Message]) -> Vec<&str> {
    messages.iter().map(|got| got.body().unwrap()).collect()
}

fn attribute<'a>(message: &'a aws_sdk_sqs::types::Message, name: &str) -> Option<&'a str> {
    message.message_attributes()?.get(name)?.string_value()
}

fn system(message: &aws_sdk_sqs::types::Message, name: MessageSystemAttributeName) -> &str {
    &message.attributes().unwrap()[&name]
}

#[tokio::test]
async fn a_queue_is_reached_by_name_url_and_arn() {
    let stack = Stack::start().await;
    let (url, arn) = stack.queue("publish-three-ways").await;
    for queue in ["publish-three-ways", &url, &arn] {
        let channel = SqsChannel::new(&stack.sqs, queue);
        let results = send_all(&channel, &messages(25)).await;
        assert_eq!(letters(&results), ".".repeat(25), "{queue}: {results:?}");
        let got = stack.drain(&url).await;
        let distinct: HashSet<_> = bodies(&got).into_iter().collect();
        assert_eq!((got.len(), distinct.len()), (25, 25), "{queue}");
        for message in &got {
            assert_eq!(attribute(message, "state"), Some("reported"));
        }
    }
}

#[tokio::test]
async fn a_fifo_queue_keeps_each_key_in_order_and_drops_duplicates() {
    let stack = Stack::start().await;
    let (url, _) = stack.queue("publish-order.fifo").await;
    let channel = SqsChannel::new(&stack.sqs, &url);
    let keys = [
        "DS#a#DSR#main",
        "DS#My House#DSR#main",
        "DS#Küche\u{1}#DSR#main",
    ];
    let long = format!("DS#{}#DSR#main", "x".repeat(500));
    let keys = [keys[0], keys[1], keys[2], &long];
    let sent: Vec<_> = (0..40)
        .map(|n| Message {
            key: keys[n % keys.len()].to_owned(),
            ..message(n)
        })
        .collect();
    assert_eq!(letters(&send_all(&channel, &sent).await), ".".repeat(40));
    // The last two batches are sent again, as after a crash.
    let again = send_all(&channel, &sent[20..]).await;
    assert_eq!(letters(&again), ".".repeat(20));

    let got = stack.drain(&url).await;
    let mut by_group: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for message in &got {
        let group = system(message, MessageSystemAttributeName::MessageGroupId);
        let bodies = by_group.entry(group.to_owned()).or_default();
        bodies.push(message.body().unwrap());
    }
    let mut expected: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for message in &sent {
        let bodies = expected.entry(group_id(&message.key)).or_default();
        bodies.push(&message.body);
    }
    assert_eq!(by_group, expected);
    let deduplication = MessageSystemAttributeName::MessageDeduplicationId;
    assert_eq!(system(&got[0], deduplication), "id-0");
}

#[tokio::test]
async fn missing_queues_and_topics_are_permanent_failures() {
    let stack = Stack::start().await;
    let (url, arn) = stack.queue("publish-here").await;
    let gone = |text: &str| text.replace("publish-here", "publish-nowhere");
    for queue in ["publish-nowhere", &gone(&url), &gone(&arn)] {
        let channel = SqsChannel::new(&stack.sqs, queue);
        let results = channel.send(&messages(2)).await;
        assert_eq!(letters(&results), "pp", "{queue}: {results:?}");
        assert!(reason(&results[0]).contains("publish-nowhere"));
    }
    let topic = stack.topic("publish-here").await;
    let channel = SnsChannel::new(&stack.sns, &gone(&topic));
    let results = channel.send(&messages(2)).await;
    assert_eq!(letters(&results), "pp", "{results:?}");
}

#[tokio::test]
async fn odd_texts_arrive_as_the_same_document() {
    let stack = Stack::start().await;
    let (url, _) = stack.queue("publish-odd").await;
    let odd = Message {
        key: "DS#\u{FFFF}\u{0}".to_owned(),
        body: "{\"a\u{FFFF}\":\"\\u0000<&>\u{FFFE}\u{7f}𝄞\\\"\"}".to_owned(),
        attributes: vec![("shadow".to_owned(), "a\u{0}<&>\u{FFFF}𝄞 ".to_owned())],
        ..message(0)
    };
    let channel = SqsChannel::new(&stack.sqs, &url);
    let results = channel.send(std::slice::from_ref(&odd)).await;
    assert_eq!(letters(&results), ".", "{results:?}");
    let got = stack.drain(&url).await;
    let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    assert_eq!(read(got[0].body().unwrap()), read(&odd.body));
    assert_eq!(attribute(&got[0], "shadow"), Some("a\u{FFFD}<&>\u{FFFD}𝄞 "));
}

#[tokio::test]
async fn a_topic_fans_out_by_our_attributes() {
    let stack = Stack::start().await;
    let topic = stack.topic("publish-fan-out").await;
    let (all, all_arn) = stack.queue("publish-all").await;
    let (desired, desired_arn) = stack.queue("publish-desired").await;
    stack.subscribe(&topic, &all_arn, None).await;
    let filter = r#"{"state": ["desired"], "operation": ["modify", "remove"]}"#;
    stack.subscribe(&topic, &desired_arn, Some(filter)).await;

    let sent: Vec<_> = (0..12)
        .map(|n| {
            let state = ["reported", "desired"][n % 2];
            let operation = ["insert", "modify", "remove"][n % 3];
            let attributes = [("state", state), ("operation", operation)];
            let owned = attributes.map(|(name, value)| (name.to_owned(), value.to_owned()));
            Message {
                attributes: owned.to_vec(),
                subject: Some("Basement".to_owned()),
                ..message(n)
            }
        })
        .collect();
    let results = send_all(&SnsChannel::new(&stack.sns, &topic), &sent).await;
    assert_eq!(letters(&results), ".".repeat(12), "{results:?}");

    let got = stack.drain(&all).await;
    let distinct: HashSet<_> = bodies(&got).into_iter().collect();
    assert_eq!((got.len(), distinct.len()), (12, 12));
    let got = stack.drain(&desired).await;
    let mut numbers: Vec<_> = bodies(&got).into_iter().map(str::to_owned).collect();
    numbers.sort();
    // Odd messages are of desired documents; of these, 3 and 9 are inserts.
    let mut expected: Vec<_> = [1, 5, 7, 11].map(|n| message(n).body).to_vec();
    expected.sort();
    assert_eq!(numbers, expected);
    assert_eq!(attribute(&got[0], "state"), Some("desired"));
}

#[tokio::test]
async fn a_fifo_topic_delivers_each_key_in_order_and_once() {
    let stack = Stack::start().await;
    let topic = stack.topic("publish-order.fifo").await;
    let (url, arn) = stack.queue("publish-from-topic.fifo").await;
    stack.subscribe(&topic, &arn, None).await;
    let channel = SnsChannel::new(&stack.sns, &topic);
    let sent: Vec<_> = (0..20)
        .map(|n| Message {
            key: ["DS#a#DSR#main", "DS#My House#DSR#main"][n % 2].to_owned(),
            ..message(n)
        })
        .collect();
    assert_eq!(letters(&send_all(&channel, &sent).await), ".".repeat(20));
    assert_eq!(letters(&channel.send(&sent[15..]).await), ".....");
    let got = stack.drain(&url).await;
    for key in ["DS#a#DSR#main", "DS#My House#DSR#main"] {
        let group = MessageSystemAttributeName::MessageGroupId;
        let of_key =
            |got: &&aws_sdk_sqs::types::Message| system(got, group.clone()) == group_id(key);
        let got: Vec<_> = got
            .iter()
            .filter(of_key)
            .map(|got| got.body().unwrap())
            .collect();
        let sent = sent.iter().filter(|message| message.key == key);
        let sent: Vec<_> = sent.map(|message| message.body.as_str()).collect();
        assert_eq!(got, sent, "{key}");
    }
}
