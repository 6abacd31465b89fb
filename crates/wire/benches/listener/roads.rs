//! The two listeners: ours, and the one made of what is on the shelf.

use antumbra_registration::{DiffCell, Parts, Registrations, Scratch, plan, wants};
use antumbra_shadow::{DiffBuffer, Model};
use antumbra_wire::item::{ItemChange, KeyBuffer};
use antumbra_wire::notification::{self, NotificationId};
use antumbra_wire::stream::{StreamBatch, Tape};
use aws_lambda_events::event::dynamodb::Event;
use regex::Regex;
use serde_json::{Value, json};

/// Keys of so many rules. One of them matches every record, if any is to.
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

pub(crate) fn load(rules: &[String]) -> Registrations {
    let files = rules.iter().enumerate().map(|(number, key)| {
        let text = json!({
            "name": format!("rule-{number}"),
            "on": { "key": key },
            "to": { "sqs": { "queue": "https://sqs.eu-west-1.amazonaws.com/123456789012/alerts" } },
        });
        (format!("rule-{number}.json"), text.to_string())
    });
    Registrations::load(files, &|_| None).unwrap()
}

/// What the listener's body does with an event, without sending anything.
pub(crate) struct Listener {
    registrations: Registrations,
    parts: Parts,
    model: Model,
    batch: StreamBatch,
    tape: Tape,
    key: KeyBuffer,
    diff: DiffBuffer,
    scratch: Scratch,
    body: String,
    /// The bodies of all messages, one after the other, and where each ends.
    arena: String,
    ends: Vec<usize>,
}

impl Listener {
    pub(crate) fn new(rules: &[String], parts: Parts, model: Model) -> Listener {
        Listener {
            registrations: load(rules),
            parts,
            model,
            batch: StreamBatch::default(),
            tape: Tape::default(),
            key: KeyBuffer::default(),
            diff: DiffBuffer::default(),
            scratch: Scratch::default(),
            body: String::new(),
            arena: String::new(),
            ends: Vec::new(),
        }
    }

    /// How many messages an event makes.
    pub(crate) fn listen(&mut self, event: &[u8]) -> usize {
        self.arena.clear();
        self.ends.clear();
        for record in self.batch.read(event).unwrap().iter() {
            let record = record.unwrap();
            let key = self.key.of(record);
            let shadow = key.shadow.is_some();
            if !wants(&self.registrations, key.text, shadow, &mut self.scratch) {
                continue;
            }
            let images = record.images(&mut self.tape).unwrap();
            let item = ItemChange::new(record, key, images);
            for document in item.documents() {
                let diff = DiffCell::new(document.old, document.new, &self.model);
                let diff = diff.in_buffer(&mut self.diff);
                let change = item.change(document, &diff);
                let state = change.shadow.map(|shadow| shadow.state);
                for &id in plan(&self.registrations, &change, &mut self.scratch) {
                    let name = &self.registrations[id].name;
                    let id = NotificationId::new(&record.event_id(), name, state);
                    let limit = 256 * 1024;
                    notification::write(&mut self.body, id, name, &change, self.parts, limit)
                        .unwrap();
                    self.arena.push_str(&self.body);
                    self.ends.push(self.arena.len());
                }
            }
        }
        self.ends.len()
    }
}

/// The same made of shelf crates, as one would write it first.
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
