//! What happened to the items of a table, and who is to hear of it.
//!
//! The rules are few and their conditions are said twice, once as registrations and once as code here,
//! so that the matching of the listener is not measured by itself.

use std::collections::HashMap;

use antumbra_service::notifications::Message;
use fastrand::Rng;
use serde_json::{Value, json};

use crate::channels::body;
use crate::stream::Record;

/// A channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Place {
    /// Two registrations share it.
    Fifo,
    Queue,
    Topic,
    Mqtt,
    Bus,
}

pub(crate) const PLACES: [(Place, &str); 5] = [
    (Place::Fifo, "sqs all.fifo"),
    (Place::Queue, "sqs warm"),
    (Place::Topic, "sns wishes"),
    (Place::Mqtt, "mqtt"),
    (Place::Bus, "eventbridge audit"),
];

/// Registrations in the order they are loaded, with their channels.
const RULES: [(&str, Place); 7] = [
    ("everything", Place::Fifo),
    ("house-1", Place::Fifo),
    ("warm", Place::Queue),
    ("wishes", Place::Topic),
    ("live", Place::Mqtt),
    ("items", Place::Mqtt),
    ("gone", Place::Bus),
];

pub(crate) fn rules() -> Vec<Value> {
    let warm = json!({ "new": { "temp": [{ "numeric": [">", 50] }] } });
    vec![
        json!({ "name": "everything", "send": ["old", "new", "diff"],
                "to": { "sqs": { "queue": "all.fifo" } } }),
        json!({ "name": "house-1", "on": { "key": "^DS#house-1#" },
                "to": { "sqs": { "queue": "all.fifo" } } }),
        json!({ "name": "warm", "on": { "state": "reported", "pattern": warm },
                "send": ["new"], "to": { "sqs": { "queue": "warm" } } }),
        json!({ "name": "wishes", "on": { "state": "desired" },
                "to": { "sns": { "topic": "arn:aws:sns:eu-west-1:123456789012:wishes" } } }),
        json!({ "name": "live", "on": { "key": "^DS#house-2#" },
                "to": { "mqtt": { "topic": "live/${state}" } } }),
        json!({ "name": "items", "on": { "key": "^SENSOR#" }, "send": ["old", "new"],
                "to": { "mqtt": { "topic": "items/${operation}" } } }),
        json!({ "name": "gone", "on": { "operations": ["remove"] }, "send": ["old"],
                "to": { "eventbridge": { "bus": "audit" } } }),
        json!({ "name": "off", "enabled": false, "to": { "sqs": { "queue": "all.fifo" } } }),
    ]
}

/// One notification, by what it says.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Notification {
    pub(crate) key: String,
    pub(crate) registration: String,
    state: String,
    operation: String,
    /// Of the document; of an item that is no shadow, the number in it.
    version: u64,
}

impl Notification {
    pub(crate) fn of(body: &Value) -> Notification {
        let text = |pointer: &str| {
            let found = body.pointer(pointer).and_then(Value::as_str);
            found.unwrap_or_default().to_owned()
        };
        let number = |pointer: &str| body.pointer(pointer).and_then(Value::as_u64);
        let version = number("/version").or(number("/new/n")).or(number("/old/n"));
        Notification {
            key: text("/key"),
            registration: text("/registration"),
            state: text("/shadow/state"),
            operation: text("/operation"),
            version: version.unwrap(),
        }
    }

    /// Where it stands among those of one record on one channel: reported before desired, and
    /// registrations in their order.
    pub(crate) fn turn(&self) -> usize {
        let rule = RULES
            .iter()
            .position(|(name, _)| *name == self.registration);
        usize::from(self.state == "desired") * RULES.len() + rule.unwrap()
    }
}

/// A shard's worth of changes.
pub(crate) struct History {
    pub(crate) records: Vec<Record>,
    /// Each record as the stream writes it.
    pub(crate) texts: Vec<String>,
    /// What each record asks for.
    pub(crate) wanted: Vec<Vec<(Place, Notification)>>,
    by_change: HashMap<(String, String, u64), usize>,
}

/// The documents of a shadow's item.
const DOCUMENTS: [&str; 2] = ["reported", "desired"];

impl History {
    pub(crate) fn new(random: &mut Rng, changes: usize) -> History {
        let mut items: HashMap<String, (u64, Option<Value>)> = HashMap::new();
        let mut history = History {
            records: Vec::new(),
            texts: Vec::new(),
            wanted: Vec::new(),
            by_change: HashMap::new(),
        };
        for sequence in 0..changes as u64 {
            // A few keys change all the time, many now and then.
            let device = random.usize(..60).min(random.usize(..60));
            let (partition, sort) = match device % 6 {
                0 => (format!("SENSOR#{device}"), "STATE".to_owned()),
                layout => (
                    format!("DS#house-{}#{device}", device % 4),
                    format!("{}#main", ["DSR", "DSD", "DSC"][layout % 3]),
                ),
            };
            let mut record = Record::new(&partition, &sort, sequence);
            let (version, item) = items.entry(record.key()).or_default();
            record.old = item.take();
            // A removal is told with the version of what is gone.
            if record.old.is_none() || random.u8(..100) < 92 {
                *version += 1;
                *item = Some(image(random, &sort, *version, record.old.as_ref()));
            }
            record.new.clone_from(item);
            let operation = record.operation().to_lowercase();
            let change = (record.key(), operation, *version);
            let twice = history.by_change.insert(change, history.records.len());
            assert_eq!(twice, None);
            history.texts.push(record.json().to_string());
            history.wanted.push(wanted(&record));
            history.records.push(record);
        }
        history
    }

    pub(crate) fn record_of(&self, what: &Notification) -> usize {
        self.by_change[&(what.key.clone(), what.operation.clone(), what.version)]
    }

    /// Old and new, where they are sent, are those of the record.
    pub(crate) fn check_content(&self, what: &Notification, message: &Message) {
        let record = &self.records[self.record_of(what)];
        let body = body(message);
        for (name, item) in [("old", &record.old), ("new", &record.new)] {
            let Some(got) = body.get(name) else { continue };
            let document = match what.state.as_str() {
                "" => with_keys(record, item.as_ref().unwrap()),
                state => item.as_ref().unwrap()[state].clone(),
            };
            assert_eq!(*got, document, "{what:?}");
        }
        let previous = record.old.as_ref().and_then(|old| old.get("version"));
        assert_eq!(body.get("previousVersion"), previous, "{what:?}");
        assert_eq!(message.key, what.key);
        assert_eq!(body["id"], message.id.as_str());
    }
}

fn with_keys(record: &Record, item: &Value) -> Value {
    let mut item = item.clone();
    item["PK"] = json!(record.partition);
    item["SK"] = json!(record.sort);
    item
}

/// An item with something new in it. Of a combined one, one half or both change.
fn image(random: &mut Rng, sort: &str, version: u64, old: Option<&Value>) -> Value {
    let document = json!({ "temp": random.u32(..100), "n": version, "on": random.bool() });
    let half = |name: &str, changes: bool| match old.map(|old| old[name].clone()) {
        Some(old) if !changes => old,
        _ => document.clone(),
    };
    let mut image = json!({ "version": version, "timestamp": version * 1000 });
    match &sort[..3] {
        "DSR" => image["reported"] = document,
        "DSD" => image["desired"] = document,
        "DSC" => {
            let which = random.u8(..3);
            image["reported"] = half("reported", which != 0);
            image["desired"] = half("desired", which != 1);
        }
        _ => return json!({ "n": version, "temp": random.u32(..100) }),
    }
    image
}

/// All that a record asks for.
fn wanted(record: &Record) -> Vec<(Place, Notification)> {
    let (key, operation) = (record.key(), record.operation().to_lowercase());
    let item = record.new.as_ref().or(record.old.as_ref()).unwrap();
    let version = item.get("version").or(item.get("n")).unwrap().as_u64();
    let mut wanted = Vec::new();
    for state in changed(record) {
        let document =
            |item: &Option<Value>| item.as_ref().and_then(|item| item.get(state)).cloned();
        let temp = document(&record.new).and_then(|new| new["temp"].as_f64());
        for (rule, place) in RULES {
            let applies = match rule {
                "everything" => !state.is_empty(),
                "house-1" => key.starts_with("DS#house-1#"),
                "warm" => state == "reported" && temp.is_some_and(|temp| temp > 50.0),
                "wishes" => state == "desired",
                "live" => key.starts_with("DS#house-2#"),
                "items" => state.is_empty(),
                _ => operation == "remove" && !state.is_empty(),
            };
            let notification = Notification {
                key: key.clone(),
                registration: rule.to_owned(),
                state: state.to_owned(),
                operation: operation.clone(),
                version: version.unwrap(),
            };
            wanted.extend(applies.then_some((place, notification)));
        }
    }
    wanted
}

/// The documents of an item that a record changed; an item that is no shadow has one without a name.
fn changed(record: &Record) -> Vec<&'static str> {
    let document = |item: &Option<Value>, state: &str| {
        let found = item.as_ref().and_then(|item| item.get(state));
        found.cloned().unwrap_or(Value::Null)
    };
    match &record.sort[..3] {
        "DSR" => vec!["reported"],
        "DSD" => vec!["desired"],
        "DSC" => {
            let differs =
                |state: &&str| document(&record.old, state) != document(&record.new, state);
            DOCUMENTS.into_iter().filter(differs).collect()
        }
        _ => vec![""],
    }
}
