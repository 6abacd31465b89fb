//! Sources that send messages to a queue, and devices that read them over MQTT.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use antumbra_queues::queue::NewMessage;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{moments, rule_event, until};
use crate::functions::{Function, Wiring, names};
use crate::stream::Streams;
use crate::world::{World, lock};

/// Things that each source does.
const ACTIONS: u64 = 10;

/// A message that the queue accepted.
#[derive(Debug, Clone)]
pub(crate) struct SentMessage {
    pub(crate) source: String,
    /// Id in the inbox.
    pub(crate) id: String,
    pub(crate) body: String,
}

/// A request for the deletion of a message.
#[derive(Debug, Clone)]
pub(crate) struct Deletion {
    pub(crate) source: String,
    pub(crate) id: String,
    pub(crate) token: String,
    /// The message existed at the time of the request.
    pub(crate) was_there: bool,
}

/// A request; its response is checked at the end.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) operation: &'static str,
    pub(crate) token: String,
    /// The function was not interrupted.
    pub(crate) ended: bool,
    /// Text that the response must contain.
    pub(crate) expected: Option<Value>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Memory {
    pub(crate) sent_messages: Vec<SentMessage>,
    pub(crate) invalid: Vec<(String, &'static str)>,
    pub(crate) deletions: Vec<Deletion>,
    pub(crate) requests: Vec<Request>,
    counter: u64,
}

/// All sources. Clones are the same.
#[derive(Clone)]
pub(crate) struct InboxActors {
    world: Arc<World>,
    streams: Streams,
    requests: Arc<[(&'static str, Function); 4]>,
    memory: Arc<Mutex<Memory>>,
}

impl InboxActors {
    pub(crate) fn new(world: &Arc<World>, wiring: &Wiring, streams: &Streams) -> InboxActors {
        InboxActors {
            world: Arc::clone(world),
            streams: streams.clone(),
            requests: Arc::new(wiring.message_requests()),
            memory: Arc::default(),
        }
    }

    pub(crate) fn memory(&self) -> Memory {
        lock(&self.memory).clone()
    }

    pub(crate) fn start(&self, began: Instant) {
        for number in 0..self.world.profile.sources {
            let count = self.world.chance.between(1, ACTIONS) as usize;
            for moment in moments(&self.world, count) {
                let (actors, source) = (self.clone(), format!("source-{number}"));
                self.world.spawner.spawn(async move {
                    until(began, moment).await;
                    actors.act(&source).await;
                });
            }
        }
    }

    async fn act(&self, source: &str) {
        match self.world.chance.below(10) {
            0..=5 => self.send_message(source),
            6 => self.send_invalid(),
            7..=8 => self.delete(source).await,
            _ => self.request_foreign_topic().await,
        }
    }

    fn count(&self) -> u64 {
        let mut memory = lock(&self.memory);
        memory.counter += 1;
        memory.counter
    }

    fn send(&self, body: &str) -> (String, u64) {
        self.world.trace.step("drop", || body.to_owned());
        let now = self.world.clock.milliseconds();
        let message = NewMessage {
            body: body.to_owned(),
            ..NewMessage::default()
        };
        (self.world.cloud.send(names::INBOUND, message), now)
    }

    fn send_message(&self, source: &str) {
        let number = self.count();
        let body =
            json!({"thingName": source, "epochTime": number, "exact": 0.1, "deep": {"a": [1]}});
        let body = body.to_string();
        let (id, sent) = self.send(&body);
        lock(&self.memory).sent_messages.push(SentMessage {
            source: source.to_owned(),
            id: format!("{number:010}-{sent}-{id}"),
            body,
        });
    }

    fn send_invalid(&self) {
        let number = self.count();
        let (body, reason) = match self.world.chance.below(4) {
            0 => (format!("invalid {number}"), "NotJson"),
            1 => (format!("[{number}]"), "NotAnObject"),
            2 => (json!({"epochTime": number}).to_string(), "UuidMissing"),
            _ => {
                let body = json!({"thingName": "a/b", "epochTime": number});
                (body.to_string(), "UuidInvalid")
            }
        };
        self.send(&body);
        lock(&self.memory).invalid.push((body, reason));
    }

    /// Returns whether a message is in the table and not deleted.
    fn is_there(&self, source: &str, id: &str) -> bool {
        self.streams.read(&self.world);
        let all = self.streams.all();
        let last = all
            .iter()
            .rfind(|change| change.partition == source && change.sort == id);
        let new = last.and_then(|change| change.new.as_ref());
        new.is_some_and(|new| new.get("undeletedId").is_some())
    }

    async fn delete(&self, source: &str) {
        let of_source = |sent: &&SentMessage| sent.source == source;
        let memory = self.memory();
        let all: Vec<&SentMessage> = memory.sent_messages.iter().filter(of_source).collect();
        if all.is_empty() {
            return;
        }
        let SentMessage { id, .. } = *self.world.chance.pick(&all);
        let was_there = self.is_there(source, id);
        let token = self
            .request("delete", &format!("{source}/{id}"), None)
            .await;
        lock(&self.memory).deletions.push(Deletion {
            source: source.to_owned(),
            id: id.clone(),
            token,
            was_there,
        });
    }

    /// A topic with a level too many, which would get around a device's policy.
    async fn request_foreign_topic(&self) {
        let expected = json!({"code": "BadRequest"});
        self.request("get", "victim/1/more", Some(expected)).await;
    }

    /// Requests all stored and all deleted messages.
    pub(crate) async fn read_back(&self) {
        for sent in self.memory().sent_messages {
            let expected = match self.is_there(&sent.source, &sent.id) {
                true => {
                    let body: Value = serde_json::from_str(&sent.body).unwrap_or_default();
                    json!({"body": body, "messageId": sent.id})
                }
                false => json!({"error": "Message not available"}),
            };
            let place = format!("{}/{}", sent.source, sent.id);
            self.request("get", &place, Some(expected)).await;
        }
        for number in 0..self.world.profile.sources {
            self.page_through(&format!("source-{number}")).await;
        }
    }

    /// Requests the newest and the oldest message of a source, and the next of each.
    async fn page_through(&self, source: &str) {
        let memory = self.memory();
        let sent_messages = memory
            .sent_messages
            .iter()
            .filter(|one| one.source == source);
        let all: Vec<&str> = sent_messages.map(|sent| sent.id.as_str()).collect();
        let is_there = |id: &&str| self.is_there(source, id);
        let there: BTreeSet<&str> = all.iter().copied().filter(is_there).collect();
        let expected = match there.first().zip(there.last()) {
            Some((oldest, newest)) => {
                json!({"oldestMessageId": oldest, "newestMessageId": newest})
            }
            None => json!({"error": "No messages available"}),
        };
        self.request("query", source, Some(expected)).await;
        for id in all {
            let next = there.iter().find(|other| **other > id);
            let expected = match next {
                Some(next) => json!({"nextMessageId": next, "specifiedMessageId": id}),
                None => json!({"error": "No newer messages available"}),
            };
            let place = format!("{source}/{id}");
            self.request("next", &place, Some(expected)).await;
        }
    }

    async fn request(
        &self,
        operation: &'static str,
        place: &str,
        expected: Option<Value>,
    ) -> String {
        let token = format!("token-{}", self.count());
        let topic = format!("request/{operation}/{place}");
        let event = rule_event(
            &self.world,
            &topic,
            "device",
            &json!({"token": token}).to_string(),
        );
        let function = self.requests.iter().find(|(name, _)| *name == operation);
        let ended = match function {
            Some((_, function)) => function.invoke_asynchronously(&self.world, &event).await,
            None => false,
        };
        lock(&self.memory).requests.push(Request {
            operation,
            token: token.clone(),
            ended,
            expected,
        });
        // A moment for the next, so that not all come at once.
        tokio::time::sleep(Duration::from_millis(5)).await;
        token
    }
}
