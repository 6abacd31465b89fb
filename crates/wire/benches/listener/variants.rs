//! What is measured, by name.

use std::hint::black_box;

use antumbra_registration::Parts;
use antumbra_shadow::{DiffBuffer, Document, Model};
use antumbra_wire::stream::{StreamBatch, Tape};
use aws_lambda_events::event::dynamodb::Event;
use serde::de::IgnoredAny;

use crate::generate::{self, Order, Shape};
use crate::roads::{Listener, Shelf, rules};

pub(crate) const RECORDS: usize = 100;
const SEED: u64 = 1;

/// One event of [`RECORDS`] records, start to end.
pub(crate) type Run = Box<dyn FnMut()>;

pub(crate) const NAMES: [&str; 12] = [
    "T",
    "decode",
    "10 rules",
    "1,000 rules",
    "10,000 rules",
    "everything sent",
    "another order",
    "nobody",
    "shelf events",
    "shelf",
    "diff",
    "json-patch",
];

/// The model that sees the timestamps of a shape.
pub(crate) fn model(shape: Shape) -> Model {
    let timestamp_field = match shape {
        Shape::Small => "t",
        Shape::Large => "timestamp",
    };
    Model {
        timestamp_field: timestamp_field.to_owned(),
        ..Model::default()
    }
}

/// A variant on an event of that shape.
pub(crate) fn variant(name: &str, shape: Shape) -> Run {
    let event = generate::event(RECORDS, shape, Order::Same, SEED);
    let listen = |event: Vec<u8>, rules: Vec<String>, parts, expected| -> Run {
        let mut listener = Listener::new(&rules, parts, model(shape));
        Box::new(move || assert_eq!(listener.listen(black_box(&event)), expected))
    };
    let diff_only = Parts::default();
    match name {
        "T" => Box::new(move || {
            black_box(serde_json::from_slice::<IgnoredAny>(black_box(&event)).unwrap());
        }),
        "decode" => {
            let (mut batch, mut tape) = (StreamBatch::default(), Tape::default());
            Box::new(move || {
                for record in batch.read(black_box(&event)).unwrap().iter() {
                    black_box(record.unwrap().images(&mut tape).unwrap());
                }
            })
        }
        "10 rules" => listen(event, rules(10, true), diff_only, RECORDS),
        "1,000 rules" => listen(event, rules(1_000, true), diff_only, RECORDS),
        "10,000 rules" => listen(event, rules(10_000, true), diff_only, RECORDS),
        "everything sent" => {
            let parts = Parts {
                old: true,
                new: true,
                diff: true,
            };
            listen(event, rules(1_000, true), parts, RECORDS)
        }
        "another order" => {
            let event = generate::event(RECORDS, shape, Order::Shuffled, SEED);
            listen(event, rules(1_000, true), diff_only, RECORDS)
        }
        "nobody" => listen(event, rules(1_000, false), diff_only, 0),
        "shelf events" => Box::new(move || {
            black_box(serde_json::from_slice::<Event>(black_box(&event)).unwrap());
        }),
        "shelf" => {
            let shelf = Shelf::new(&rules(10, true));
            Box::new(move || assert_eq!(shelf.listen(black_box(&event)), RECORDS))
        }
        "diff" => diff(&event, model(shape)),
        "json-patch" => json_patch(&event),
        _ => Box::new(|| {}),
    }
}

/// Our diff alone, of documents on tapes.
fn diff(event: &[u8], model: Model) -> Run {
    let pairs: Vec<_> = pairs(event)
        .into_iter()
        .map(|pair| pair.map(|json| Document::parse(&json).unwrap()))
        .collect();
    let mut buffer = DiffBuffer::default();
    Box::new(move || {
        for [old, new] in &pairs {
            black_box(buffer.diff(old.view(), new.view(), &model).is_empty());
        }
    })
}

/// The same with `json-patch`, of documents as `serde_json` values.
fn json_patch(event: &[u8]) -> Run {
    let pairs: Vec<[serde_json::Value; 2]> = pairs(event)
        .into_iter()
        .map(|pair| pair.map(|json| serde_json::from_str(&json).unwrap()))
        .collect();
    Box::new(move || {
        for [old, new] in &pairs {
            black_box(json_patch::diff(old, new));
        }
    })
}

/// The old and new reported documents of an event, as plain JSON.
fn pairs(event: &[u8]) -> Vec<[String; 2]> {
    let (mut batch, mut tape) = (StreamBatch::default(), Tape::default());
    let records = batch.read(event).unwrap();
    records
        .iter()
        .map(|record| {
            let images = record.unwrap().images(&mut tape).unwrap();
            let json = |image: Option<antumbra_shadow::View<'_>>| {
                image.unwrap().get("reported").unwrap().to_json()
            };
            [json(images.old), json(images.new)]
        })
        .collect()
}
