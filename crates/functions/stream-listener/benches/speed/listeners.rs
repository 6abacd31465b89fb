//! Two listeners: the product, and one made of off-the-shelf crates.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use antumbra_notify::{BatchSummary, ChannelFactory, Listener};
use antumbra_registration::{Registrations, Target};
use antumbra_service::clock::{Clock, SystemClock};
use antumbra_service::notifications::{Channel, ChannelLimits, Message, SendError};
use antumbra_shadow::Model;
use async_trait::async_trait;
use aws_lambda_events::event::dynamodb::Event;
use regex::Regex;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use antumbra_testkit::stream::Shape;

/// The content of notifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sent {
    Diff,
    Everything,
    /// The diff; the rules are paths of leaf conditions instead of keys.
    Leaves,
}

/// The paths of `count` leaf conditions without a key, one of which matches a changed sensor of every record.
pub(crate) fn paths(count: usize) -> Vec<String> {
    (0..count)
        .map(|number| match number % 3 {
            _ if number == count / 2 => "/room*/**".to_owned(),
            0 => format!("/room*/valve-{number}"),
            1 => format!("/**/indoor-{number}"),
            _ => format!("/hall {number}/*/**"),
        })
        .collect()
}

/// The keys of `count` rules. If `matching`, one of them matches every record.
pub(crate) fn rules(count: usize, wanted: bool) -> Vec<String> {
    (0..count)
        .map(|number| match number % 3 {
            _ if number == count / 2 && wanted => "^DS#My House#Basement#.*#DSR#".to_owned(),
            0 => format!("^DS#House {number}#.*#DSR#"),
            1 => format!("#Room {number}#"),
            _ => format!("^DS#Plant#Hall {number}#DSR#main$"),
        })
        .collect()
}

/// The registrations of these rules: names and texts of files.
pub(crate) fn files(rules: &[String], sent: Sent) -> impl Iterator<Item = (String, String)> {
    rules.iter().enumerate().map(move |(number, key)| {
        let mut text = json!({
            "name": format!("rule-{number}"),
            "on": { "key": key },
            "to": { "sqs": { "queue": "https://sqs.eu-west-1.amazonaws.com/123456789012/alerts" } },
        });
        match sent {
            Sent::Diff => {}
            Sent::Everything => text["send"] = json!(["old", "new", "diff"]),
            Sent::Leaves => {
                text["on"] = json!({ "leaf": { "path": key, "change": ["added", "updated"] } });
            }
        }
        (format!("rule-{number}.json"), text.to_string())
    })
}

pub(crate) fn load(rules: &[String], sent: Sent) -> Registrations {
    Registrations::load(files(rules, sent), &|_| None).unwrap()
}

/// The model with the timestamp field of a shape.
pub(crate) fn model(shape: Shape) -> Model {
    Model {
        timestamp_fields: vec![shape.timestamp_field().to_owned()],
        ..Model::default()
    }
}

/// A channel that accepts everything at once.
#[derive(Default)]
struct Open {
    taken: AtomicUsize,
}

#[async_trait]
impl Channel for Open {
    fn limits(&self) -> ChannelLimits {
        ChannelLimits {
            batch_count: 10,
            batch_bytes: 1024 * 1024,
            message_bytes: 1024 * 1024,
        }
    }

    async fn send(&self, messages: &[Message]) -> Vec<Result<(), SendError>> {
        let bytes: usize = messages.iter().map(Message::bytes).sum();
        self.taken.fetch_add(bytes, Ordering::Relaxed);
        std::future::ready(vec![Ok(()); messages.len()]).await
    }
}

struct OpenChannels(Arc<Open>);

impl ChannelFactory for OpenChannels {
    fn channel(&self, _: &Target) -> Option<Arc<dyn Channel>> {
        Some(Arc::clone(&self.0) as Arc<dyn Channel>)
    }

    fn undeliverable(&self) -> Arc<dyn Channel> {
        Arc::clone(&self.0) as Arc<dyn Channel>
    }
}

/// The product's listener, on channels that accept everything.
pub(crate) struct Ours {
    pub(crate) listener: Listener,
    runtime: Runtime,
    open: Arc<Open>,
}

impl Ours {
    pub(crate) fn new(rules: &[String], sent: Sent, shape: Shape) -> Ours {
        let open = Arc::new(Open::default());
        let channels = OpenChannels(Arc::clone(&open));
        let registrations = load(rules, sent);
        Ours {
            listener: Listener::new(
                registrations,
                &channels,
                model(shape),
                Arc::new(SystemClock),
            )
            .unwrap(),
            // As in the function.
            runtime: tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap(),
            open,
        }
    }

    /// Handles an event from its bytes to accepted batches.
    pub(crate) fn handle(&self, event: &[u8]) -> BatchSummary {
        let deadline = SystemClock.now().after(Duration::from_secs(60));
        let handling = self.listener.handle(event, deadline);
        let summary = self.runtime.block_on(handling).unwrap();
        assert_eq!((summary.undeliverable, &summary.resume_at), (0, &None));
        summary
    }

    /// Bytes of all messages accepted so far.
    pub(crate) fn taken_bytes(&self) -> usize {
        self.open.taken.load(Ordering::Relaxed)
    }
}

/// A straightforward listener made of off-the-shelf crates.
pub(crate) struct Shelf {
    rules: Vec<Regex>,
}

impl Shelf {
    pub(crate) fn new(rules: &[String]) -> Shelf {
        Shelf {
            rules: rules.iter().map(|rule| Regex::new(rule).unwrap()).collect(),
        }
    }

    pub(crate) fn listen(&self, event: &[u8]) -> usize {
        let event: Event = serde_json::from_slice(event).unwrap();
        let mut messages = Vec::new();
        for record in event.records {
            let old: Value = serde_dynamo::from_item(record.change.old_image).unwrap();
            let new: Value = serde_dynamo::from_item(record.change.new_image).unwrap();
            let text = |name: &str| new[name].as_str().unwrap_or_default().to_owned();
            let key = format!("{}#{}", text("PK"), text("SK"));
            let diff = json_patch::diff(&old["reported"], &new["reported"]);
            for (number, rule) in self.rules.iter().enumerate() {
                if !rule.is_match(&key) {
                    continue;
                }
                let message = json!({
                    "id": format!("{}:rule-{number}", record.event_id),
                    "registration": format!("rule-{number}"),
                    "key": key,
                    "operation": record.event_name,
                    "version": new["version"],
                    "previousVersion": old["version"],
                    "timestamp": new["timestamp"],
                    "clientToken": new["clientToken"],
                    "diff": diff,
                });
                messages.push(message.to_string());
            }
        }
        messages.len()
    }
}
