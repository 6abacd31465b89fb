//! Patterns on documents: the same rules and documents for our engine and AWS's.

use std::hint::black_box;

use antumbra_registration::{
    Change, DiffCell, KeyAttributes, Operation, Registrations, Scratch, ShadowRef, plan,
};
use antumbra_shadow::{Document, Model, State};
use serde_json::{Value, json};

use crate::documents;
use crate::variants::SEED;
use antumbra_testkit::stream::Shape;

/// Numbers of rules to measure.
pub(crate) const COUNTS: [usize; 4] = [10, 100, 1_000, 10_000];

/// Patterns with all common kinds of conditions. Each is about one site of as many as there are rules, as registrations
/// of a fleet are.
pub(crate) fn patterns(count: usize) -> Vec<Value> {
    let pattern = |number: usize| {
        let (room, sensor) = (format!("room{}", number % 5), (number % 10).to_string());
        let value =
            |conditions: Value| json!({ room.clone(): { sensor.clone(): { "v": conditions } } });
        let site = number / 4;
        match number % 4 {
            0 => json!({ "id": [format!("site-{site}/device-{}", number % 3)] }),
            1 => json!({
                "id": [{ "prefix": format!("site-{site}/") }],
                "new": value(json!([{ "numeric": [">", number % 10] }])),
            }),
            2 => json!({
                "id": [{ "prefix": format!("site-{site}/") }],
                "operation": ["modify"],
                "old": value(json!([{ "numeric": [">=", 2, "<", 8] }])),
            }),
            _ => json!({
                "id": [{ "prefix": format!("site-{site}/") }],
                "new": value(json!([{ "anything-but": [number % 10, 3] }])),
                "clientToken": [{ "exists": false }],
            }),
        }
    };
    (0..count).map(pattern).collect()
}

/// The changes to match: old and new, and their shadow.
pub(crate) fn documents(count: usize) -> Vec<String> {
    let mut random = fastrand::Rng::with_seed(SEED);
    let sites = count.div_ceil(4);
    let pairs = documents::pairs(Shape::Small);
    let document = |[old, new]: &documents::Pair| {
        let id = format!(
            "site-{}/device-{}",
            random.usize(..sites),
            random.usize(..3)
        );
        format!(r#"{{"id":"{id}","new":{new},"old":{old},"operation":"modify"}}"#)
    };
    pairs.iter().map(document).collect()
}

/// Our engine, from the texts of documents to the matching rules. Returns the number of matches.
pub(crate) struct Engine {
    registrations: Registrations,
    scratch: Scratch,
    model: Model,
}

impl Engine {
    pub(crate) fn new(patterns: &[Value]) -> Engine {
        let files = patterns.iter().enumerate().map(|(number, pattern)| {
            let text = json!({
                "name": format!("rule-{number}"),
                "on": { "pattern": pattern },
                "to": { "sqs": { "queue": "https://sqs.eu-west-1.amazonaws.com/123456789012/alerts" } },
            });
            (format!("rule-{number}.json"), text.to_string())
        });
        Engine {
            registrations: Registrations::load(files, &|_| None).unwrap(),
            scratch: Scratch::default(),
            model: Model::default(),
        }
    }

    pub(crate) fn matches(&mut self, documents: &[String]) -> usize {
        documents
            .iter()
            .map(|text| self.matches_of(black_box(text)))
            .sum()
    }

    fn matches_of(&mut self, text: &str) -> usize {
        let document = Document::parse(text).unwrap();
        let view = document.view();
        let id = view.get("id").unwrap().as_str().unwrap();
        let (old, new) = (view.get("old"), view.get("new"));
        let diff = DiffCell::new(old, new, &self.model);
        let change = Change {
            key: "DS#lamp#DSR#main",
            key_attributes: KeyAttributes::default(),
            shadow: Some(ShadowRef {
                id: &id,
                name: "main",
                state: State::Reported,
            }),
            operation: Operation::Modify,
            expired: false,
            version: None,
            previous_version: None,
            client_token: None,
            timestamp: None,
            old,
            new,
            diff: &diff,
            acknowledged: None,
        };
        plan(&self.registrations, &change, &mut self.scratch).len()
    }
}
