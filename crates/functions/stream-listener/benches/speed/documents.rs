//! Documents of any number of sensors, and diff, merge and acknowledge on pairs of them.

use std::hint::black_box;

use antumbra_shadow::{
    DiffBuffer, Document, Mode, Model, Timestamp, acknowledge, merge as merge_documents,
};
use antumbra_wire::stream::{StreamBatch, Tape};
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};

use crate::listeners::model;
use crate::variants::{RECORDS, Run, SEED};
use antumbra_testkit::stream::{self, Order, Shape};

/// A document before and after, as plain JSON.
pub(crate) type Pair = [String; 2];

/// The reported documents of an event.
pub(crate) fn pairs(shape: Shape) -> Vec<Pair> {
    let event = stream::event(RECORDS, shape, Order::Same, SEED);
    let (mut batch, mut tape) = (StreamBatch::default(), Tape::default());
    let records = batch.read(&event).unwrap();
    let pairs = records.iter().map(|record| {
        let images = record.unwrap().images(&mut tape).unwrap();
        let json = |image: Option<antumbra_shadow::View<'_>>| {
            let document = image.unwrap().get("reported").unwrap().to_json();
            // Names in rising order, as documents are stored.
            Document::parse(&document).unwrap().as_str().to_owned()
        };
        [json(images.old), json(images.new)]
    });
    pairs.collect()
}

/// The number of leaves that differ. Timestamps and values count separately, as in peers without timestamped values.
pub(crate) fn changed_leaves(pairs: &[Pair]) -> usize {
    let value = |json: &String| -> Value { serde_json::from_str(json).unwrap() };
    let patch = |pair: &Pair| json_patch::diff(&value(&pair[0]), &value(&pair[1])).0.len();
    pairs.iter().map(patch).sum()
}

fn parsed(pairs: &[Pair]) -> Vec<[Document; 2]> {
    let parse = |json: &String| Document::parse(json).unwrap();
    pairs
        .iter()
        .map(|pair| pair.each_ref().map(parse))
        .collect()
}

fn merged(stored: &Document, sent: &Document, model: &Model) -> Document {
    merge_documents(
        stored,
        sent,
        Mode::ServerIsMaster,
        model,
        Timestamp::default(),
    )
    .document
}

/// Our diff of parsed documents.
pub(crate) fn diff(pairs: &[Pair], shape: Shape) -> Run {
    let (pairs, model) = (parsed(pairs), model(shape));
    let mut buffer = DiffBuffer::default();
    Box::new(move || {
        for [old, new] in &pairs {
            let diff = buffer.diff(black_box(old.view()), black_box(new.view()), &model);
            assert!(diff.value_changed());
        }
    })
}

/// The same with `json-patch`, of documents as `serde_json` values.
pub(crate) fn json_patch(pairs: &[Pair]) -> Run {
    let value = |json: &String| -> Value { serde_json::from_str(json).unwrap() };
    let pairs: Vec<[Value; 2]> = pairs
        .iter()
        .map(|pair| pair.each_ref().map(value))
        .collect();
    Box::new(move || {
        for [old, new] in &pairs {
            assert!(
                !json_patch::diff(black_box(old), black_box(new))
                    .0
                    .is_empty()
            );
        }
    })
}

/// Our merge of parsed documents.
pub(crate) fn merge(pairs: &[Pair], shape: Shape) -> Run {
    let (pairs, model) = (parsed(pairs), model(shape));
    Box::new(move || {
        for [old, new] in &pairs {
            assert_eq!(
                merged(black_box(old), black_box(new), &model)
                    .as_str()
                    .len(),
                new.as_str().len()
            );
        }
    })
}

/// Merge from two texts to one.
pub(crate) fn merge_texts(pairs: Vec<Pair>, shape: Shape) -> Run {
    let model = model(shape);
    Box::new(move || {
        for pair in &pairs {
            let [old, new] = pair
                .each_ref()
                .map(|json| Document::parse(black_box(json)).unwrap());
            assert_eq!(
                merged(&old, &new, &model).as_str().len(),
                new.as_str().len()
            );
        }
    })
}

/// Tokenises both texts.
pub(crate) fn tokenise(pairs: Vec<Pair>) -> Run {
    Box::new(move || {
        for json in pairs.iter().flatten() {
            black_box(serde_json::from_str::<IgnoredAny>(black_box(json)).unwrap());
        }
    })
}

/// The expected results of merge and acknowledge, to check peers.
pub(crate) struct Outcomes {
    /// Old merged with new.
    pub(crate) merged: Vec<String>,
    /// New merged with old, which is stale and changes nothing.
    pub(crate) merged_late: Vec<String>,
    /// The desired document with timestamps. Only whole sensors can be acknowledged, as peers support nothing smaller.
    pub(crate) desired: Vec<String>,
    /// The desired document after acknowledgement.
    pub(crate) still_desired: Vec<String>,
}

pub(crate) fn outcomes(pairs: &[Pair], shape: Shape) -> Outcomes {
    let (documents, model) = (parsed(pairs), model(shape));
    let text = |document: Document| document.as_str().to_owned();
    let desired: Vec<Document> = pairs
        .iter()
        .map(|pair| desired(pair, shape, Times::Kept))
        .collect();
    let left = |([_, new], desired): (&[Document; 2], &Document)| {
        let done = acknowledge(new, desired, &model);
        assert!(!done.acknowledged.is_empty());
        text(done.desired)
    };
    Outcomes {
        merged: documents
            .iter()
            .map(|[old, new]| text(merged(old, new, &model)))
            .collect(),
        merged_late: documents
            .iter()
            .map(|[old, new]| text(merged(new, old, &model)))
            .collect(),
        still_desired: documents.iter().zip(&desired).map(left).collect(),
        desired: desired.into_iter().map(text).collect(),
    }
}

/// Timestamps of desired values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Times {
    Kept,
    LeftOut,
}

/// Acknowledges the desired document: the changed sensors are acknowledged.
pub(crate) fn acknowledged(pairs: &[Pair], shape: Shape, times: Times) -> Run {
    let (documents, model) = (parsed(pairs), model(shape));
    let desired: Vec<Document> = pairs
        .iter()
        .map(|pair| desired(pair, shape, times))
        .collect();
    Box::new(move || {
        for ([_, reported], desired) in documents.iter().zip(&desired) {
            let done = acknowledge(black_box(reported), black_box(desired), &model);
            assert!(!done.acknowledged.is_empty());
        }
    })
}

/// A desired document that differs from the reported one except in the changed sensors.
fn desired(pair: &Pair, shape: Shape, times: Times) -> Document {
    let [old, mut new]: [Map<String, Value>; 2] = pair
        .each_ref()
        .map(|json| serde_json::from_str(json).unwrap());
    for (room, sensors) in &mut new {
        for (name, sensor) in sensors.as_object_mut().unwrap() {
            let sensor = sensor.as_object_mut().unwrap();
            if times == Times::LeftOut {
                sensor.remove(shape.timestamp_field());
            }
            let value = shape.value_field();
            if old[room][name].get(value) == sensor.get(value) {
                sensor.insert(value.to_owned(), json!(99));
            }
        }
    }
    Document::parse(&Value::Object(new).to_string()).unwrap()
}

/// A pair of documents with this many sensors, of which every sixteenth changed.
pub(crate) fn pair_of(sensors: usize) -> Pair {
    let mut random = fastrand::Rng::with_seed(SEED);
    let (mut old, mut new) = (Map::new(), Map::new());
    for sensor in 0..sensors {
        let (time, value) = (1_731_700_000 + random.u64(..100_000), random.u32(..10));
        let room = format!("room{:04}", sensor / 10);
        let name = (sensor % 10).to_string();
        let put = |document: &mut Map<String, Value>, time: u64, value: u32| {
            let room = document.entry(&room).or_insert_with(|| json!({}));
            room[&name] = json!({ "t": time, "v": value });
        };
        put(&mut old, time, value);
        let changed = u32::from(sensor % 16 == 7);
        put(
            &mut new,
            time + u64::from(changed) * 60,
            (value + changed) % 10,
        );
    }
    [
        Value::Object(old).to_string(),
        Value::Object(new).to_string(),
    ]
}
