//! Memory of the listener, counted, on the worst images that are legal.

use std::sync::Arc;

use antumbra_notify::{ChannelFactory, Listener, explain};
use antumbra_registration::{Registrations, Target};
use antumbra_service::clock::Clock as _;
use antumbra_service::notifications::{Channel, ChannelLimits, Message, SendError};
use antumbra_shadow::Model;
use antumbra_testkit::SQS_LIMITS;
use async_trait::async_trait;
use serde_json::json;

use crate::channels::{TIME, clock, registrations};
use crate::stream::sequence_number;

/// Peak of allocated bytes, as a multiple of the bytes of the images.
const FACTOR: u64 = 20;
/// Bytes that stay allocated for the next event.
const KEPT: i64 = 2 * 1024 * 1024;

/// A target that accepts or rejects everything, and keeps nothing.
struct Sink {
    message_bytes: usize,
    accepts: bool,
}

#[async_trait]
impl Channel for Sink {
    fn limits(&self) -> ChannelLimits {
        ChannelLimits {
            message_bytes: self.message_bytes,
            ..SQS_LIMITS
        }
    }

    async fn send(&self, messages: &[Message]) -> Vec<Result<(), SendError>> {
        let reply = |_: &Message| match self.accepts {
            true => Ok(()),
            false => Err(SendError::Permanent("no".to_owned())),
        };
        messages.iter().map(reply).collect()
    }
}

struct Sinks;

impl ChannelFactory for Sinks {
    fn channel(&self, target: &Target) -> Option<Arc<dyn Channel>> {
        let (message_bytes, accepts) = match target {
            Target::Mqtt(_) => (128 * 1024, true),
            target => (1024 * 1024, target.properties().address() != "missing"),
        };
        Some(Arc::new(Sink {
            message_bytes,
            accepts,
        }))
    }

    fn undeliverable(&self) -> Arc<dyn Channel> {
        Arc::new(Sink {
            message_bytes: 1024 * 1024,
            accepts: true,
        })
    }
}

fn members(count: usize, value: &str) -> String {
    let members: Vec<String> = (0..count).map(|n| format!("\"{n}\":{value}")).collect();
    format!("{{\"M\":{{{}}}}}", members.join(","))
}

fn elements(count: usize, value: &str) -> String {
    format!(
        "{{\"M\":{{\"a\":{{\"L\":[{}]}}}}}}",
        vec![value; count].join(",")
    )
}

fn deep(members: &str) -> String {
    let open = "{\"M\":{\"d\":".repeat(29);
    format!("{open}{members}{}", "}}".repeat(29))
}

/// Documents of about 400 KB, as stream images: names, before and after.
fn worst() -> [(&'static str, String, String); 6] {
    let long = "n".repeat(40_000);
    let below = |value: &str| format!("{{\"M\":{{\"{long}\":{}}}}}", members(8_500, value));
    let number = |n: u8| format!("{{\"N\":\"{n}\"}}");
    let (one, two) = (number(1), number(2));
    [
        ("long name", below(&one), below(&two)),
        ("long name, same", below(&one), below(&one)),
        (
            "32 levels",
            deep(&members(30_000, &one)),
            deep(&members(30_000, &two)),
        ),
        (
            "empty objects",
            elements(130_000, "{\"M\":{}}"),
            elements(130_000, "{\"L\":[]}"),
        ),
        ("elements", elements(100_000, &one), elements(100_000, &two)),
        (
            "one long text",
            members(1, &format!("{{\"S\":\"{}\"}}", "a".repeat(399_000))),
            members(1, &format!("{{\"S\":\"{}\"}}", "b".repeat(399_000))),
        ),
    ]
}

/// An event with one record; `sort` is the sort key of the item.
fn event(sort: &str, old: Option<&str>, new: Option<&str>) -> Vec<u8> {
    let keys = format!(r#""PK":{{"S":"DS#lamp"}},"SK":{{"S":"{sort}"}}"#);
    let image = |name: &str, version: u32, document: Option<&str>| {
        document.map_or_else(String::new, |document| {
            let times = r#""version":{"N":"VERSION"},"timestamp":{"N":"1700000000000000000"}"#;
            let times = times.replace("VERSION", &version.to_string());
            format!(r#","{name}":{{{keys},{times},"reported":{document},"desired":{document}}}"#)
        })
    };
    let operation = match (old, new) {
        (None, _) => "INSERT",
        (Some(_), Some(_)) => "MODIFY",
        (Some(_), None) => "REMOVE",
    };
    format!(
        r#"{{"Records":[{{"eventID":"1","eventName":"{operation}","eventSource":"aws:dynamodb","dynamodb":{{
        "Keys":{{{keys}}},"SequenceNumber":"{}"{}{}}}}}]}}"#,
        sequence_number(1),
        image("OldImage", 1, old),
        image("NewImage", 2, new),
    )
    .into_bytes()
}

fn rules() -> Registrations {
    let whole = ["old", "new", "diff"];
    let pattern = json!({ "new": { "a": ["never"], "0": ["never"] } });
    registrations(&[
        json!({ "name": "whole", "send": whole, "to": { "sqs": { "queue": "a" } } }),
        json!({ "name": "live", "to": { "mqtt": { "topic": "t/${id}" } } }),
        json!({ "name": "missing", "send": whole, "to": { "sqs": { "queue": "missing" } } }),
        json!({ "name": "never", "on": { "pattern": pattern }, "to": { "sqs": { "queue": "a" } } }),
        json!({ "name": "delta", "as": "shadow-delta", "to": { "mqtt": { "topic": "d/${id}" } } }),
        json!({ "name": "both", "as": "shadow-documents", "to": { "mqtt": { "topic": "b/${id}" } } }),
    ])
}

/// Each registration has a message of its own, so the peak grows with their number: here there are six.
#[test]
fn memory_is_bounded_by_the_images() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let rules = rules();
    let mut beyond = Vec::new();
    for (name, one, other) in worst() {
        let (one, other) = (one.as_str(), other.as_str());
        for sort in ["DSR#main", "DSC#main"] {
            for (old, new) in [
                (None, Some(one)),
                (Some(one), Some(other)),
                (Some(one), None),
            ] {
                let event = event(sort, old, new);
                let clock = Arc::new(clock());
                let deadline = clock.now().after(TIME);
                let model = Model::default();
                let listener = Listener::new(self::rules(), &Sinks, model, clock).unwrap();
                let mut resume_at = None;

                let measured = allocation_counter::measure(|| {
                    let summary = runtime.block_on(listener.handle(&event, deadline));
                    resume_at = Some(summary.unwrap().resume_at);
                });
                assert_eq!(resume_at, Some(None), "{name} {sort}");
                let explained = allocation_counter::measure(|| drop(explain(&rules, &event)));
                let limit = FACTOR * event.len() as u64;
                let times = |peak: u64| peak as f64 / event.len() as f64;
                if measured.bytes_max > limit || explained.bytes_max > limit {
                    let (sent, explained) = (measured.bytes_max, explained.bytes_max);
                    let (sent, explained) = (times(sent), times(explained));
                    beyond.push(format!("{name} {sort}: {sent:.0} and {explained:.0} times"));
                }
                if measured.bytes_current > KEPT {
                    let kept = measured.bytes_current;
                    beyond.push(format!("{name} {sort}: {kept} bytes stay"));
                }
            }
        }
    }
    assert!(beyond.is_empty(), "\n{}", beyond.join("\n"));
}
