//! Values of the naive reference: leaves, times, ids, pointers.
//!
//! It is written on `serde_json::Value` and shares nothing with the crate but the model.

use antumbra_shadow::{Arrays, Model};
use serde_json::{Map, Number, Value};

/// Reads JSON text; numbers of the same value become the same `Value`.
pub(crate) fn parse(text: &str) -> Value {
    normal(serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}")))
}

/// The same value with whole numbers as integers, in whichever form they were written.
pub(crate) fn normal(value: Value) -> Value {
    match value {
        Value::Number(n) => Value::Number(normal_number(&n)),
        Value::Array(items) => items.into_iter().map(normal).collect(),
        Value::Object(members) => members.into_iter().map(|(k, v)| (k, normal(v))).collect(),
        other => other,
    }
}

fn normal_number(n: &Number) -> Number {
    if let Some(whole) = n.as_i64() {
        return whole.into();
    }
    let float = n.as_f64().expect("a number within f64");
    if float.fract() == 0.0 && float.abs() < 9e15 {
        return (float as i64).into();
    }
    Number::from_f64(float).expect("a finite number")
}

/// The names in either object, in the order of documents: by their written form.
pub(crate) fn all_names(one: &Value, other: &Value) -> Vec<String> {
    let keys = |value: &Value| -> Vec<String> {
        value
            .as_object()
            .into_iter()
            .flat_map(Map::keys)
            .cloned()
            .collect()
    };
    let written = |key: &String| {
        let quoted = Value::from(key.as_str()).to_string();
        quoted[1..quoted.len() - 1].to_owned()
    };
    let mut names = keys(one);
    names.extend(keys(other));
    names.sort_by_key(written);
    names.dedup();
    names
}

/// The pointer of a member.
pub(crate) fn member(path: &str, key: &str) -> String {
    format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"))
}

/// The pointer of an element.
pub(crate) fn element(path: &str, index: usize) -> String {
    format!("{path}/{index}")
}

/// The instant that a scalar denotes, in nanoseconds since 1970.
pub(crate) fn instant(value: &Value) -> Option<i128> {
    match value {
        Value::Number(n) => {
            // Written without an exponent.
            let text = match n.as_i64() {
                Some(whole) => whole.to_string(),
                None => n.as_f64()?.to_string(),
            };
            let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
            let count: i64 = whole.parse().ok()?;
            let unit = i128::from(unit(count));
            let billionths: i128 = format!("{fraction:0<9}")[..9].parse().ok()?;
            let part = billionths * unit / 1_000_000_000;
            let sign = if text.starts_with('-') { -1 } else { 1 };
            Some(i128::from(count) * unit + sign * part)
        }
        Value::String(text) => {
            // The oracle reads more than RFC 3339, so the shape is checked first.
            let shape: String = text
                .chars()
                .map(|c| if c.is_ascii_digit() { '0' } else { c })
                .collect();
            let rest = shape
                .get(19..)?
                .trim_start_matches('.')
                .trim_start_matches('0');
            let known = [
                "0000-00-00T00:00:00",
                "0000-00-00t00:00:00",
                "0000-00-00 00:00:00",
            ];
            let start = known.contains(&shape.get(..19)?);
            if !start || !["Z", "z", "+00:00", "-00:00"].contains(&rest) {
                return None;
            }
            let instant: jiff::Timestamp = nine_digits(text).parse().ok()?;
            // It knows years below 0 too, which RFC 3339 does not.
            Some(instant.as_nanosecond()).filter(|at| *at >= -62_167_219_200_000_000_000)
        }
        _ => None,
    }
}

/// The same time without the digits finer than a nanosecond, which the oracle rejects.
fn nine_digits(text: &str) -> String {
    let Some((head, tail)) = text.split_once('.') else {
        return text.to_owned();
    };
    let end = tail
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(tail.len());
    format!("{head}.{}{}", &tail[..end.min(9)], &tail[end..])
}

/// Nanoseconds in the unit that an integer time is counted in.
pub(crate) fn unit(n: i64) -> i64 {
    match n.unsigned_abs() {
        n if n < 100_000_000_000 => 1_000_000_000,
        n if n < 100_000_000_000_000 => 1_000_000,
        n if n < 100_000_000_000_000_000 => 1_000,
        _ => 1,
    }
}

/// When a timestamped value was measured; none for plain values.
pub(crate) fn time(value: &Value, model: &Model) -> Option<i128> {
    let mut fields = model.timestamp_fields.iter();
    fields.find_map(|field| instant(value.get(field)?))
}

/// Returns `true` if it is an object or an array.
pub(crate) fn is_container(value: &Value) -> bool {
    value.is_object() || value.is_array()
}

/// Returns `true` if it is one leaf.
pub(crate) fn is_leaf(value: &Value, model: &Model) -> bool {
    time(value, model).is_some()
        || match value {
            Value::Object(members) => members.is_empty(),
            Value::Array(items) => items.is_empty() || model.arrays == Arrays::Whole,
            _ => true,
        }
}

/// All leaves of the value at `path`, which is not the root.
pub(crate) fn leaves(path: &str, value: &Value, model: &Model) -> Vec<(String, Value)> {
    if is_leaf(value, model) {
        return vec![(path.to_owned(), value.clone())];
    }
    below(path, value, model)
}

/// All leaves below a container; with an empty path those of a document.
pub(crate) fn below(path: &str, value: &Value, model: &Model) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    for key in all_names(value, &Value::Null) {
        found.extend(leaves(&member(path, &key), &value[&key], model));
    }
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        found.extend(leaves(&element(path, index), item, model));
    }
    found
}

/// The ids of an array's elements, if each has one of its own.
pub(crate) fn ids(items: &[Value], model: &Model) -> Option<Vec<Value>> {
    let mut ids: Vec<Value> = Vec::new();
    for item in items {
        let id = item.get(&model.id_field)?;
        if !(id.is_string() || id.is_number()) || ids.contains(id) {
            return None;
        }
        ids.push(id.clone());
    }
    Some(ids)
}

/// An object without its timestamp field.
pub(crate) fn without_time(value: &Value, model: &Model) -> Value {
    let mut value = value.clone();
    if let Some(members) = value.as_object_mut() {
        members.retain(|name, _| !model.timestamp_fields.contains(name));
    }
    value
}
