//! What is measured, by name.

use std::hint::black_box;

use antumbra_registration::Parts;
use antumbra_shadow::{DiffBuffer, Model};
use antumbra_wire::stream::{StreamBatch, Tape};
use serde::de::IgnoredAny;

use crate::generate::{self, Order, Shape};
use crate::roads::{Listener, Shelf, rules};

pub(crate) const RECORDS: usize = 100;
const SEED: u64 = 1;

pub(crate) type Variant = (&'static str, Box<dyn FnMut()>);

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

/// Every variant on an event of that shape; each run is one event of [`RECORDS`] records.
pub(crate) fn all(shape: Shape) -> Vec<Variant> {
    let event = |order| generate::event(RECORDS, shape, order, SEED);
    let listen = |name, order, rules: Vec<String>, parts, wanted| -> Variant {
        let event = event(order);
        let mut listener = Listener::new(&rules, parts, model(shape));
        let expected = if wanted { RECORDS } else { 0 };
        let run = move || assert_eq!(listener.listen(black_box(&event)), expected);
        (name, Box::new(run))
    };
    let diff_only = Parts::default();
    let everything = Parts {
        old: true,
        new: true,
        diff: true,
    };
    vec![
        ("T", {
            let event = event(Order::Same);
            Box::new(move || {
                black_box(serde_json::from_slice::<IgnoredAny>(black_box(&event)).unwrap());
            })
        }),
        ("decode", {
            let event = event(Order::Same);
            let (mut batch, mut tape) = (StreamBatch::default(), Tape::default());
            Box::new(move || {
                for record in batch.read(black_box(&event)).unwrap().iter() {
                    black_box(record.unwrap().images(&mut tape).unwrap());
                }
            })
        }),
        listen("10 rules", Order::Same, rules(10, true), diff_only, true),
        listen(
            "1,000 rules",
            Order::Same,
            rules(1_000, true),
            diff_only,
            true,
        ),
        listen(
            "10,000 rules",
            Order::Same,
            rules(10_000, true),
            diff_only,
            true,
        ),
        listen(
            "everything sent",
            Order::Same,
            rules(1_000, true),
            everything,
            true,
        ),
        listen(
            "another order",
            Order::Shuffled,
            rules(1_000, true),
            diff_only,
            true,
        ),
        listen("nobody", Order::Same, rules(1_000, false), diff_only, false),
        ("shelf events", {
            let event = event(Order::Same);
            Box::new(move || {
                let event: aws_lambda_events::event::dynamodb::Event =
                    serde_json::from_slice(black_box(&event)).unwrap();
                black_box(event);
            })
        }),
        ("shelf", {
            let event = event(Order::Same);
            let shelf = Shelf::new(&rules(10, true));
            Box::new(move || assert_eq!(shelf.listen(black_box(&event)), RECORDS))
        }),
        diff(shape),
        json_patch(shape),
    ]
}

/// Our diff alone, of documents on tapes.
fn diff(shape: Shape) -> Variant {
    let event = generate::event(RECORDS, shape, Order::Same, SEED);
    let model = model(shape);
    let pairs: Vec<_> = pairs(&event)
        .into_iter()
        .map(|pair| pair.map(|json| antumbra_shadow::Document::parse(&json).unwrap()))
        .collect();
    let mut buffer = DiffBuffer::default();
    let run = move || {
        for [old, new] in &pairs {
            black_box(buffer.diff(old.view(), new.view(), &model).is_empty());
        }
    };
    ("diff", Box::new(run))
}

/// The same with `json-patch`, of documents as `serde_json` values.
fn json_patch(shape: Shape) -> Variant {
    let event = generate::event(RECORDS, shape, Order::Same, SEED);
    let pairs: Vec<[serde_json::Value; 2]> = pairs(&event)
        .into_iter()
        .map(|pair| pair.map(|json| serde_json::from_str(&json).unwrap()))
        .collect();
    let run = move || {
        for [old, new] in &pairs {
            black_box(json_patch::diff(old, new));
        }
    };
    ("json-patch", Box::new(run))
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
