//! A function with a store in memory, and a channel that records responses.

use std::sync::Arc;
use std::time::Duration;

use antumbra_lambda_kit::HandlerError;
use antumbra_memory::MemoryShadows;
use antumbra_service::clock::{Clock, ManualClock};
use antumbra_service::notifications::{Channel, Message};
use antumbra_service::shadows::{
    DocumentSet, Layout, Read, ReadConsistency, ShadowId, ShadowStore, StoreError, StoredDocument,
};
use antumbra_shadow::Timestamp;
use antumbra_shadow_requests::{Config, ShadowRequests};
use antumbra_testkit::RecordingChannel;
use antumbra_wire::shadow_mqtt::{ShadowDocument, ShadowDocuments};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// Start of the clock, in seconds.
pub(crate) const START: i64 = 1_700_000_000;

pub(crate) struct Function<P> {
    pub(crate) requests: ShadowRequests<P>,
    pub(crate) responses: Arc<RecordingChannel>,
    pub(crate) clock: Arc<ManualClock>,
}

pub(crate) fn in_memory(layout: Layout) -> (Function<MemoryShadows>, MemoryShadows) {
    let store = MemoryShadows::new(layout);
    (function(store.clone()), store)
}

pub(crate) fn function<P: ShadowStore>(store: P) -> Function<P> {
    configured(store, Config::default())
}

pub(crate) fn configured<P: ShadowStore>(store: P, config: Config) -> Function<P> {
    let start = Timestamp::from_nanoseconds(i128::from(START) * 1_000_000_000);
    let clock = Arc::new(ManualClock::new(start));
    let responses = Arc::new(RecordingChannel::with_limits(10, 128 * 1024));
    let channel: Arc<dyn Channel> = responses.clone();
    let requests = ShadowRequests::new(store, config, channel, clock.clone());
    Function {
        requests,
        responses,
        clock,
    }
}

/// The event of a rule, received at the start of the clock.
pub(crate) fn event(topic: &str, client: &str, payload: &[u8]) -> Vec<u8> {
    event_at(topic, client, payload, START * 1000)
}

/// The event of a rule, received at a time in milliseconds or microseconds.
pub(crate) fn event_at(topic: &str, client: &str, payload: &[u8], time: i64) -> Vec<u8> {
    let payload = STANDARD.encode(payload);
    let event = json!({"payload": payload, "topic": topic, "clientId": client, "timestamp": time});
    event.to_string().into_bytes()
}

impl<P: ShadowStore> Function<P> {
    /// Sends a request and returns the topic and payload of its response.
    pub(crate) async fn request(&self, topic: &str, payload: &[u8]) -> (String, Value) {
        let deadline = self.clock.now().after(Duration::from_secs(10));
        let now = (self.clock.now().nanoseconds() / 1000) as i64;
        let event = event_at(topic, "lamp", payload, now);
        self.requests.respond(&event, deadline).await.unwrap();
        self.response()
    }

    pub(crate) async fn refuse(&self, topic: &str) -> HandlerError {
        let deadline = self.clock.now().after(Duration::from_secs(10));
        let event = event(topic, "lamp", b"");
        let summary = self.requests.respond(&event, deadline).await;
        let error = summary.unwrap_err();
        assert!(self.responses.accepted().is_empty());
        error
    }

    pub(crate) fn response(&self) -> (String, Value) {
        let [response] = <[Message; 1]>::try_from(self.responses.take_accepted()).unwrap();
        let body = serde_json::from_str(&response.body).unwrap();
        assert_eq!(response.qos, 1);
        (response.topic.unwrap(), body)
    }
}

/// Both documents as the stream would show them.
pub(crate) async fn sections<P: ShadowStore>(store: &P, shadow: &ShadowId) -> ShadowDocuments {
    let read = Read {
        shadow: shadow.clone(),
        parts: DocumentSet::Both,
    };
    let found = store.read(&read, ReadConsistency::Strong).await;
    let found = match found {
        Err(StoreError::NotFound) => return ShadowDocuments::default(),
        found => found.unwrap(),
    };
    let section = |held: &StoredDocument| ShadowDocument {
        document: held.document.clone(),
        times: held.leaf_times(),
    };
    ShadowDocuments {
        reported: found.reported.as_ref().map(section),
        desired: found.desired.as_ref().map(section),
        version: found.version(store.layout()).0,
    }
}
