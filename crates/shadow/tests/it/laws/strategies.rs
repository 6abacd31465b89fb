//! Random documents.

use antumbra_shadow::{Document, Mode, Model, Timestamp};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

/// 2024-05-01T10:00:00Z.
pub(crate) const BASE_SECONDS: i64 = 1_714_557_600;

/// A second after the base: some of the drawn times are before it, some after.
pub(crate) fn now() -> Timestamp {
    Timestamp::from_nanoseconds(i128::from(BASE_SECONDS + 1) * 1_000_000_000)
}

pub(crate) fn mode() -> impl Strategy<Value = Mode> {
    select(vec![
        Mode::ServerIsMaster,
        Mode::ClientIsMaster,
        Mode::Patch,
    ])
}

/// The default model, with and without the guard against clocks that run ahead.
pub(crate) fn model() -> impl Strategy<Value = Model> {
    let bound = select(vec![None, None, Some(0), Some(1)]);
    bound.prop_map(|seconds| Model {
        max_future: seconds.map(std::time::Duration::from_secs),
        ..Model::default()
    })
}

fn key() -> impl Strategy<Value = String> {
    let names = ["a", "a", "b", "b", "c", "d/~", "é\"", "id", "timestamp"];
    select(names.to_vec()).prop_map(str::to_owned)
}

fn scalar() -> impl Strategy<Value = Value> {
    select(vec![
        json!(null),
        json!(true),
        json!(false),
        json!(0),
        json!(1),
        json!(1.0),
        json!(1.5),
        json!(-2),
        json!(100.0),
        json!(""),
        json!("x"),
        json!("1"),
        json!("é\n"),
    ])
}

/// An instant in one of the forms it may be written in.
pub(crate) fn written(quarter_seconds: i64, form: u8) -> Value {
    let nanoseconds =
        i128::from(BASE_SECONDS) * 1_000_000_000 + i128::from(quarter_seconds) * 250_000_000;
    let shifted = |minutes: i128, offset: &str| {
        let local = nanoseconds + minutes * 60_000_000_000;
        let text = jiff::Timestamp::from_nanosecond(local)
            .expect("a time")
            .to_string();
        text.replace('Z', offset)
    };
    let counted = |unit: i128| Value::from((nanoseconds / unit) as i64);
    match form {
        0 => shifted(0, "Z").into(),
        1 => shifted(120, "+02:00").into(),
        2 => shifted(-330, "-05:30").into(),
        3 => shifted(0, "z").replace('T', " ").into(),
        4 => counted(1_000_000_000),
        5 => counted(1_000_000),
        6 => counted(1_000),
        _ => counted(1),
    }
}

fn good_time() -> impl Strategy<Value = Value> {
    (0..16_i64, 0..8_u8).prop_map(|(quarters, form)| written(quarters, form))
}

fn bad_time() -> impl Strategy<Value = Value> {
    select(vec![
        json!("soon"),
        json!(1.5),
        json!(true),
        json!(null),
        json!(""),
        json!({}),
        json!([1]),
        json!("1714557600"),
        json!("2024-05-01"),
        json!({"a": 1}),
    ])
}

/// An object with a timestamp field, three times in four a good one.
fn timed() -> impl Strategy<Value = Value> {
    let time = prop_oneof![3 => good_time().boxed(), 1 => bad_time().boxed()];
    let value =
        prop_oneof![4 => scalar().boxed(), 1 => Just(json!({"a": null, "timestamp": 5})).boxed()];
    (time, value, proptest::option::of(scalar())).prop_map(|(time, value, unit)| {
        let mut object = json!({ "timestamp": time, "value": value });
        if let Some(unit) = unit {
            object["unit"] = unit;
        }
        object
    })
}

fn object(members: impl IntoIterator<Item = (String, Value)>) -> Value {
    Value::Object(members.into_iter().collect())
}

/// Elements with ids, mostly each its own.
fn identified(inner: impl Strategy<Value = Value> + 'static) -> impl Strategy<Value = Value> {
    let id = select(vec![
        json!(1),
        json!(2),
        json!(3),
        json!("x"),
        json!("1"),
        json!(2.0),
    ]);
    let members = btree_map(key(), inner, 0..3);
    let element =
        (id, members, proptest::option::of(good_time())).prop_map(|(id, members, time)| {
            let mut element = object(members);
            element["id"] = id;
            if let Some(time) = time {
                element["timestamp"] = time;
            }
            element
        });
    vec(element, 0..4).prop_map(Value::Array)
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        5 => scalar().boxed(),
        4 => timed().boxed(),
        1 => Just(json!({})).boxed(),
        1 => Just(json!([])).boxed(),
    ];
    leaf.prop_recursive(3, 20, 4, |inner| {
        prop_oneof![
            3 => btree_map(key(), inner.clone(), 0..4).prop_map(object).boxed(),
            2 => vec(inner.clone(), 0..4).prop_map(Value::Array).boxed(),
            2 => identified(inner).boxed(),
        ]
    })
}

pub(crate) fn document() -> impl Strategy<Value = Value> {
    btree_map(key(), value(), 0..5).prop_map(object)
}

/// Two documents: independent ones, or the second made of parts of the first and of an independent one.
pub(crate) fn pair() -> impl Strategy<Value = (Value, Value)> {
    (document(), document(), vec(0..8_u8, 1..40)).prop_map(|(one, other, dice)| {
        let mut dice = dice.into_iter().cycle();
        let blended = match dice.next() {
            Some(0) => other,
            _ => blend(&one, &other, &mut dice),
        };
        let blended = if blended.is_object() {
            blended
        } else {
            json!({})
        };
        (one, blended)
    })
}

/// A value that has much in common with `one`.
fn blend(one: &Value, other: &Value, dice: &mut impl Iterator<Item = u8>) -> Value {
    let roll = dice.next().unwrap_or(0);
    match (one, other) {
        (Value::Object(a), Value::Object(b)) if roll < 6 => {
            let mut result = Map::new();
            for (key, value) in a {
                match (dice.next(), b.get(key)) {
                    (Some(0), _) => {}
                    (Some(1), _) => drop(result.insert(key.clone(), Value::Null)),
                    (_, Some(other)) => drop(result.insert(key.clone(), blend(value, other, dice))),
                    (_, None) => drop(result.insert(
                        key.clone(),
                        blend(value, &b.values().next().cloned().unwrap_or_default(), dice),
                    )),
                }
            }
            let rest = b.iter().filter(|(key, _)| !a.contains_key(*key));
            result.extend(
                rest.take(usize::from(roll) / 2)
                    .map(|(key, value)| (key.clone(), value.clone())),
            );
            Value::Object(result)
        }
        (Value::Array(a), Value::Array(b)) if roll < 6 => {
            let mut items: Vec<Value> = Vec::new();
            for (index, value) in a.iter().enumerate() {
                match dice.next() {
                    Some(0) => {}
                    Some(1) => items.insert(0, value.clone()),
                    _ => items.push(blend(value, b.get(index).unwrap_or(&Value::Null), dice)),
                }
            }
            let more = b.iter().take(usize::from(roll) / 2).cloned();
            let at = if roll.is_multiple_of(2) {
                items.len()
            } else {
                0
            };
            items.splice(at..at, more);
            Value::Array(items)
        }
        _ if roll < 6 => one.clone(),
        _ => other.clone(),
    }
}

pub(crate) fn document_of(value: &Value) -> Document {
    Document::from_value(value).unwrap_or_else(|e| panic!("{e}: {value}"))
}
