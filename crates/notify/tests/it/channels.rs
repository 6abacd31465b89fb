//! A listener on recording channels.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use antumbra_notify::{BatchSummary, ChannelFactory, Listener, ReadDocuments, Spill, SpillSummary};
use antumbra_registration::{Registrations, Target};
use antumbra_service::clock::{Clock, ManualClock};
use antumbra_service::notifications::suspension::Suspensions;
use antumbra_service::notifications::{Channel, Message};
use antumbra_shadow::{Model, Timestamp};
use antumbra_testkit::RecordingChannel;
use antumbra_testkit::suspensions::MemorySuspensions;
use antumbra_wire::events::sqs::QueueMessage;
use serde_json::{Value, json};

use crate::stream::{Record, event_of};

pub(crate) fn body(message: &Message) -> Value {
    serde_json::from_str(&message.body).unwrap()
}

/// All channels, by kind and address.
#[derive(Default)]
pub(crate) struct Fakes {
    by_address: Mutex<BTreeMap<String, Arc<RecordingChannel>>>,
    pub(crate) undeliverable: Arc<RecordingChannel>,
    pub(crate) spill: SpillQueue,
}

/// The spill queue, with the records of failing targets.
#[derive(Default)]
pub(crate) struct SpillQueue {
    pub(crate) channel: Arc<RecordingChannel>,
    pub(crate) suspensions: Arc<MemorySuspensions>,
    /// Messages that were accepted and are not deleted, in order, each once.
    pub(crate) waiting: Mutex<Vec<QueueMessage>>,
}

impl SpillQueue {
    pub(crate) fn route(&self) -> Spill {
        Spill {
            queue: Arc::clone(&self.channel) as Arc<dyn Channel>,
            suspensions: Arc::clone(&self.suspensions) as Arc<dyn Suspensions>,
        }
    }

    /// Messages that a consumer receives; the queue drops those it has accepted before.
    pub(crate) fn receive(&self, now: Timestamp) -> Vec<QueueMessage> {
        let mut waiting = self.waiting.lock().unwrap();
        for message in self.channel.take_accepted() {
            if waiting.iter().all(|known| known.id != message.id) {
                waiting.push(queue_message(&message.id, &message.key, &message.body, now));
            }
        }
        waiting.clone()
    }

    /// Deletes the received messages that did not fail.
    pub(crate) fn delete(&self, received: &[QueueMessage], failed: &[String]) {
        let is_done = |message: &QueueMessage| {
            let received = received.iter().any(|known| known.id == message.id);
            received && !failed.contains(&message.id)
        };
        self.waiting.lock().unwrap().retain(|one| !is_done(one));
    }
}

/// A message as Lambda passes it to a function.
pub(crate) fn queue_message(id: &str, group: &str, body: &str, sent: Timestamp) -> QueueMessage {
    let milliseconds = sent.nanoseconds() / 1_000_000;
    let event = json!({ "Records": [{
        "messageId": id, "body": body, "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:eu-west-1:123456789012:spill.fifo",
        "attributes": { "SentTimestamp": milliseconds.to_string(), "MessageGroupId": group },
    }] });
    let messages = antumbra_wire::events::sqs::read(event.to_string().as_bytes());
    messages.unwrap().remove(0)
}

impl Fakes {
    /// The channel at this address, such as `sqs alerts`; MQTT has one for all topics.
    pub(crate) fn at(&self, address: &str) -> Arc<RecordingChannel> {
        let mut known = self.by_address.lock().unwrap();
        Arc::clone(known.entry(address.to_owned()).or_default())
    }
}

fn address(target: &Target) -> String {
    let name = target.properties().address().rsplit(':').next();
    let name = name.unwrap_or_default();
    format!("{} {name}", target.kind()).trim_end().to_owned()
}

impl ChannelFactory for Fakes {
    fn channel(&self, target: &Target) -> Option<Arc<dyn Channel>> {
        Some(self.at(&address(target)))
    }

    fn undeliverable(&self) -> Arc<dyn Channel> {
        Arc::clone(&self.undeliverable) as Arc<dyn Channel>
    }
}

pub(crate) fn registrations(list: &[Value]) -> Registrations {
    let named = list.iter().enumerate();
    let files = named.map(|(at, value)| (format!("{at}.json"), value.to_string()));
    Registrations::load(files, &|_| None).unwrap_or_else(|errors| panic!("{errors}"))
}

/// A listener on recording channels, with a manual clock.
pub(crate) struct Bench {
    pub(crate) fakes: Fakes,
    pub(crate) clock: Arc<ManualClock>,
    listener: Listener,
}

/// Timeout of the function.
pub(crate) const TIME: Duration = Duration::from_secs(30);

impl Bench {
    pub(crate) fn new(list: &[Value]) -> Bench {
        Bench::on(Fakes::default(), list)
    }

    pub(crate) fn on(fakes: Fakes, list: &[Value]) -> Bench {
        let clock = Arc::new(clock());
        let model = Model::default();
        let listener = Listener::new(registrations(list), &fakes, model, clock.clone()).unwrap();
        Bench {
            fakes,
            clock,
            listener,
        }
    }

    /// Adds a reader for documents in separate items.
    pub(crate) fn with_reader(self, documents: ReadDocuments) -> Bench {
        Bench {
            listener: self.listener.with_reader(documents),
            ..self
        }
    }

    pub(crate) fn with_spill(self) -> Bench {
        Bench {
            listener: self.listener.with_spill(self.fakes.spill.route()),
            ..self
        }
    }

    pub(crate) fn at(&self, address: &str) -> Arc<RecordingChannel> {
        self.fakes.at(address)
    }

    /// Passes all messages of the spill queue to the listener.
    pub(crate) async fn drain(&self) -> SpillSummary {
        let now = self.clock.now();
        let received = self.fakes.spill.receive(now);
        let summary = self.handle_spilled(&received).await;
        self.fakes.spill.delete(&received, &summary.failed);
        summary
    }

    pub(crate) async fn handle_spilled(&self, messages: &[QueueMessage]) -> SpillSummary {
        let deadline = self.clock.now().after(TIME);
        self.listener.handle_spilled(messages, deadline).await
    }

    /// Messages in the undeliverable queue.
    pub(crate) fn undeliverable(&self) -> Vec<Value> {
        self.fakes.undeliverable.json()
    }

    pub(crate) async fn handle(&self, event: &[u8]) -> BatchSummary {
        self.handle_within(event, TIME).await
    }

    pub(crate) async fn handle_records(&self, records: &[Record]) -> BatchSummary {
        self.handle(&event_of(records)).await
    }

    pub(crate) async fn handle_within(&self, event: &[u8], time: Duration) -> BatchSummary {
        let deadline = self.clock.now().after(time);
        self.listener.handle(event, deadline).await.unwrap()
    }

    /// Reason why an event is rejected.
    pub(crate) async fn refuse(&self, event: &[u8]) -> String {
        let deadline = self.clock.now().after(TIME);
        let error = self.listener.handle(event, deadline).await.unwrap_err();
        error.to_string()
    }
}

pub(crate) fn clock() -> ManualClock {
    ManualClock::new(Timestamp::parse("2026-01-31T12:00:00Z").unwrap())
}

/// Asserts that the shard goes on after this many notifications.
#[track_caller]
pub(crate) fn assert_done(summary: &BatchSummary, sent: usize, undeliverable: usize) {
    let counts = (summary.sent, summary.undeliverable);
    assert_eq!(counts, (sent, undeliverable), "{summary:?}");
    assert_eq!(summary.resume_at, None);
}
