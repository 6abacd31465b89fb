//! A listener on recording channels.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use antumbra_notify::{BatchSummary, ChannelFactory, Listener};
use antumbra_registration::{Registrations, Target};
use antumbra_service::clock::{Clock, ManualClock};
use antumbra_service::notifications::{Channel, Message};
use antumbra_service::shadows::CurrentDocuments;
use antumbra_shadow::{Model, Timestamp};
use antumbra_testkit::RecordingChannel;
use serde_json::Value;

pub(crate) fn body(message: &Message) -> Value {
    serde_json::from_str(&message.body).unwrap()
}

/// All channels, by kind and address.
#[derive(Default)]
pub(crate) struct Fakes {
    by_address: Mutex<BTreeMap<String, Arc<RecordingChannel>>>,
    pub(crate) undeliverable: Arc<RecordingChannel>,
}

impl Fakes {
    /// The one at this address, such as `sqs alerts`; MQTT has one for all topics.
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

    pub(crate) fn at(&self, address: &str) -> Arc<RecordingChannel> {
        self.fakes.at(address)
    }

    /// Messages in the undeliverable queue.
    pub(crate) fn undeliverable(&self) -> Vec<Value> {
        self.fakes.undeliverable.json()
    }

    pub(crate) async fn handle(&self, event: &[u8]) -> BatchSummary {
        self.handle_within(event, TIME).await
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
