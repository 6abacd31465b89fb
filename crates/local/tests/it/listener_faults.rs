//! Order and loss over the wire: the listener sends through the real SDKs to emulated queues and topics,
//! while calls are lost before they arrive, lost after, or arrive in part.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use antumbra_local::{clients::sdk_config, queues};
use antumbra_notify::{ChannelFactory, Listener};
use antumbra_publish::AwsChannelFactory;
use antumbra_registration::{Registrations, Target};
use antumbra_service::clock::{Clock, ManualClock};
use antumbra_service::notifications::{BoxFuture, Channel, ChannelLimits, Message, SendError};
use antumbra_shadow::{Model, Timestamp};
use aws_sdk_sqs::Client as Sqs;
use serde_json::{Value, json};

use crate::support::soon;

const CHANGES: usize = 150;
const DEVICES: usize = 9;
const BATCH: usize = 30;

/// Lets calls to a real channel go wrong.
struct Flaky {
    inner: Arc<dyn Channel>,
    random: Mutex<fastrand::Rng>,
}

impl Channel for Flaky {
    fn limits(&self) -> ChannelLimits {
        self.inner.limits()
    }

    fn send<'a>(&'a self, messages: &'a [Message]) -> BoxFuture<'a, Vec<Result<(), SendError>>> {
        Box::pin(async move {
            let lost = || Err(SendError::Retry("lost".to_owned()));
            let fate = self.random.lock().unwrap().u8(0..10);
            match fate {
                0..3 => messages.iter().map(|_| lost()).collect(),
                3..5 => {
                    self.inner.send(messages).await;
                    messages.iter().map(|_| lost()).collect()
                }
                5..7 => {
                    let some: Vec<Message> = messages.iter().step_by(2).cloned().collect();
                    let mut answers = self.inner.send(&some).await.into_iter();
                    let answer = |at: usize| {
                        if at.is_multiple_of(2) {
                            answers.next().unwrap()
                        } else {
                            lost()
                        }
                    };
                    (0..messages.len()).map(answer).collect()
                }
                _ => self.inner.send(messages).await,
            }
        })
    }
}

struct FlakyChannels(AwsChannelFactory, u64);

impl ChannelFactory for FlakyChannels {
    fn channel(&self, target: &Target) -> Option<Arc<dyn Channel>> {
        let inner = self.0.channel(target)?;
        let random = Mutex::new(fastrand::Rng::with_seed(self.1));
        Some(Arc::new(Flaky { inner, random }))
    }

    fn undeliverable(&self) -> Arc<dyn Channel> {
        self.0.undeliverable()
    }
}

/// The stream: change `at` is the next version of one of the devices.
fn record(at: usize) -> Value {
    let version = (at / DEVICES + 1).to_string();
    let image = |n: usize| json!({ "version": { "N": version }, "reported": { "M": { "n": { "N": n.to_string() } } } });
    json!({
        "eventID": format!("event-{at}"),
        "eventName": "MODIFY",
        "dynamodb": {
            "SequenceNumber": (1000 + at).to_string(),
            "Keys": { "PK": { "S": format!("DS#device-{}", at % DEVICES) }, "SK": { "S": "DSR#main" } },
            "OldImage": image(at),
            "NewImage": image(at + 1),
        },
    })
}

/// Every message of a queue until so many different ones have come.
async fn drain(sqs: &Sqs, queue: &str) -> Vec<Value> {
    let mut all = Vec::new();
    let mut ids = BTreeSet::new();
    while ids.len() < CHANGES {
        let received = sqs
            .receive_message()
            .queue_url(queue)
            .max_number_of_messages(10)
            .wait_time_seconds(2);
        for message in soon("a message", received.send())
            .await
            .unwrap()
            .messages
            .unwrap_or_default()
        {
            let body: Value = serde_json::from_str(message.body().unwrap()).unwrap();
            ids.insert(body["id"].to_string());
            all.push(body);
            let done = sqs
                .delete_message()
                .queue_url(queue)
                .receipt_handle(message.receipt_handle().unwrap());
            done.send().await.unwrap();
        }
    }
    all
}

async fn run(seed: u64) {
    let queues = queues::start(0).await.unwrap();
    let sdk = sdk_config(queues.address());
    let (sqs, sns) = (Sqs::new(&sdk), aws_sdk_sns::Client::new(&sdk));
    let fifo = sqs.create_queue().queue_name("changes.fifo");
    let fifo = fifo.attributes(aws_sdk_sqs::types::QueueAttributeName::FifoQueue, "true");
    fifo.send().await.unwrap();
    sqs.create_queue().queue_name("heard").send().await.unwrap();
    let topic = sns
        .create_topic()
        .name("changes")
        .send()
        .await
        .unwrap()
        .topic_arn
        .unwrap();
    let subscribe = sns
        .subscribe()
        .topic_arn(&topic)
        .protocol("sqs")
        .endpoint(queues::queue_arn("heard"));
    subscribe
        .attributes("RawMessageDelivery", "true")
        .send()
        .await
        .unwrap();

    let rules = [
        json!({ "name": "queue", "to": { "sqs": { "queue": "changes.fifo" } } }).to_string(),
        json!({ "name": "topic", "to": { "sns": { "topic": topic } } }).to_string(),
    ];
    let registrations =
        Registrations::load(rules.iter().map(|rule| ("rule.json", rule)), &|_| None).unwrap();
    let aws = AwsChannelFactory::new(&sdk, None, queues.queue_url("undeliverable"));
    let clock = Arc::new(ManualClock::new(
        Timestamp::parse("2026-01-01T00:00:00Z").unwrap(),
    ));
    let channels = FlakyChannels(aws, seed);
    let listener =
        Listener::new(registrations, &channels, Model::default(), clock.clone()).unwrap();

    // As Lambda does it: from the lowest record reported, or on.
    let (mut at, mut reported) = (0, 0);
    while at < CHANGES {
        let records: Vec<Value> = (at..CHANGES.min(at + BATCH)).map(record).collect();
        let event = json!({ "Records": records }).to_string();
        let deadline = clock.now().after(Duration::from_millis(300));
        let handled = listener.handle(event.as_bytes(), deadline).await.unwrap();
        at = match handled.resume_at {
            Some(sequence) => {
                reported += 1;
                sequence.parse::<usize>().unwrap() - 1000
            }
            None => at + records.len(),
        };
    }
    assert!(reported > 0, "seed {seed}: no failure was felt");

    for queue in ["changes.fifo", "heard"] {
        let mut bodies: BTreeMap<String, Value> = BTreeMap::new();
        let mut last: BTreeMap<String, u64> = BTreeMap::new();
        for body in drain(&sqs, &queues.queue_url(queue)).await {
            let id = body["id"].to_string();
            if let Some(before) = bodies.get(&id) {
                assert_eq!(*before, body, "seed {seed}: another body under one id");
                continue;
            }
            let version = body["version"].as_u64().unwrap();
            let key = body["key"].to_string();
            if queue == "changes.fifo" {
                let before = last.insert(key, version).unwrap_or(0);
                assert_eq!(version, before + 1, "seed {seed}: a gap, or out of order");
            }
            bodies.insert(id, body);
        }
        assert_eq!(bodies.len(), CHANGES, "seed {seed}: {queue}");
    }
    queues.stop().await;
}

#[tokio::test]
async fn every_change_arrives_in_order_over_the_wire_whatever_happens_to_calls() {
    for seed in 0..4 {
        run(seed).await;
    }
}
