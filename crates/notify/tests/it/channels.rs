//! Channels that keep what they are given and answer as they are told.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use antumbra_notify::{BatchSummary, ChannelFactory, Listener};
use antumbra_registration::{Registrations, Target};
use antumbra_service::clock::{Clock, ManualClock};
use antumbra_service::notifications::{BoxFuture, Channel, ChannelLimits, Message, SendError};
use antumbra_service::shadows::CurrentDocuments;
use antumbra_shadow::{Model, Timestamp};
use serde_json::Value;

pub(crate) type Sent = Result<(), SendError>;
type Answer = dyn Fn(&Message) -> Sent + Send + Sync;

/// A channel with a script.
pub(crate) struct Fake {
    limits: Mutex<ChannelLimits>,
    answer: Mutex<Box<Answer>>,
    calls: Mutex<Vec<Vec<Message>>>,
    arrived: Mutex<Vec<Message>>,
}

/// What SQS allows.
pub(crate) const LIMITS: ChannelLimits = ChannelLimits {
    batch_count: 10,
    batch_bytes: 1024 * 1024,
    message_bytes: 1024 * 1024,
};

impl Default for Fake {
    fn default() -> Fake {
        Fake {
            limits: Mutex::new(LIMITS),
            answer: Mutex::new(Box::new(|_| Ok(()))),
            calls: Mutex::default(),
            arrived: Mutex::default(),
        }
    }
}

impl Fake {
    /// Answers like this from now on.
    pub(crate) fn answer(&self, answer: impl Fn(&Message) -> Sent + Send + Sync + 'static) {
        *self.answer.lock().unwrap() = Box::new(answer);
    }

    /// Must be called before a listener asks.
    pub(crate) fn limit(&self, limits: ChannelLimits) {
        *self.limits.lock().unwrap() = limits;
    }

    /// What arrived, in order.
    pub(crate) fn arrived(&self) -> Vec<Message> {
        self.arrived.lock().unwrap().clone()
    }

    /// The bodies of what arrived.
    pub(crate) fn bodies(&self) -> Vec<Value> {
        self.arrived().iter().map(body).collect()
    }

    /// One field of each body.
    pub(crate) fn each(&self, pointer: &str) -> Vec<Value> {
        let at = |body: &Value| body.pointer(pointer).cloned().unwrap_or(Value::Null);
        self.bodies().iter().map(at).collect()
    }

    /// What was sent with each call, whether it arrived or not.
    pub(crate) fn calls(&self) -> Vec<Vec<Message>> {
        self.calls.lock().unwrap().clone()
    }
}

pub(crate) fn body(message: &Message) -> Value {
    serde_json::from_str(&message.body).unwrap()
}

impl Channel for Fake {
    fn limits(&self) -> ChannelLimits {
        *self.limits.lock().unwrap()
    }

    fn send<'a>(&'a self, messages: &'a [Message]) -> BoxFuture<'a, Vec<Sent>> {
        Box::pin(async move {
            check(messages, self.limits());
            self.calls.lock().unwrap().push(messages.to_vec());
            let answer = self.answer.lock().unwrap();
            let mut arrived = self.arrived.lock().unwrap();
            let mut take = |message: &Message| {
                let sent = answer(message);
                if sent.is_ok() {
                    arrived.push(message.clone());
                }
                sent
            };
            messages.iter().map(&mut take).collect()
        })
    }
}

/// What every service refuses as a whole, and so must never be asked.
pub(crate) fn check(messages: &[Message], limits: ChannelLimits) {
    let bytes: usize = messages.iter().map(Message::bytes).sum();
    assert!((1..=limits.batch_count).contains(&messages.len()));
    assert!(bytes <= limits.batch_bytes, "{bytes} bytes in one call");
    let largest = messages.iter().map(Message::bytes).max();
    assert!(largest <= Some(limits.message_bytes), "{largest:?} bytes");
}

/// All channels, by kind and address.
#[derive(Default)]
pub(crate) struct Fakes {
    by_address: Mutex<BTreeMap<String, Arc<Fake>>>,
    pub(crate) undeliverable: Arc<Fake>,
}

impl Fakes {
    /// The one at this address, such as `sqs alerts`; MQTT has one for all topics.
    pub(crate) fn at(&self, address: &str) -> Arc<Fake> {
        let mut known = self.by_address.lock().unwrap();
        Arc::clone(known.entry(address.to_owned()).or_default())
    }
}

pub(crate) fn address(target: &Target) -> String {
    match target {
        Target::Sqs(sqs) => format!("sqs {}", sqs.queue.as_str()),
        Target::Sns(sns) => format!("sns {}", sns.topic.rsplit(':').next().unwrap()),
        Target::Mqtt(_) => "mqtt".to_owned(),
        Target::EventBridge(bus) => format!("eventbridge {}", bus.bus),
        Target::Clients(_) => "clients".to_owned(),
    }
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

/// A listener on its channels and a clock that stands still.
pub(crate) struct Bench {
    pub(crate) fakes: Fakes,
    pub(crate) clock: Arc<ManualClock>,
    listener: Listener,
}

/// As long as the function may run.
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

    /// With a way to documents that lie apart.
    pub(crate) fn with_documents(self, documents: Arc<dyn CurrentDocuments>) -> Bench {
        Bench {
            listener: self.listener.with_documents(documents),
            ..self
        }
    }

    pub(crate) fn at(&self, address: &str) -> Arc<Fake> {
        self.fakes.at(address)
    }

    /// What lies in the undeliverable queue.
    pub(crate) fn parked(&self) -> Vec<Value> {
        self.fakes.undeliverable.bodies()
    }

    pub(crate) async fn handle(&self, event: &[u8]) -> BatchSummary {
        self.handle_within(event, TIME).await
    }

    pub(crate) async fn handle_within(&self, event: &[u8], time: Duration) -> BatchSummary {
        let deadline = self.clock.now().after(time);
        self.listener.handle(event, deadline).await.unwrap()
    }

    /// Why an event is none.
    pub(crate) async fn refuse(&self, event: &[u8]) -> String {
        let deadline = self.clock.now().after(TIME);
        let error = self.listener.handle(event, deadline).await.unwrap_err();
        error.to_string()
    }
}

pub(crate) fn clock() -> ManualClock {
    ManualClock::new(Timestamp::parse("2026-01-31T12:00:00Z").unwrap())
}

pub(crate) fn retry() -> Sent {
    Err(SendError::Retry("throttled".to_owned()))
}

pub(crate) fn permanent(reason: &str) -> Sent {
    Err(SendError::Permanent(reason.to_owned()))
}
