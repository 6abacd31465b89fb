//! Documents, with serde_json as the oracle for syntax and a digit-by-digit reader for numbers.

use antumbra_service::inbox::Body;
use antumbra_shadow::{Document, DocumentError, Kind, View, limits};
use serde_json::Value;

use crate::json::{Decimal, numbers};
use crate::oracle::has_twins;

pub(crate) fn run(bytes: &[u8]) {
    let ours = Document::from_slice(bytes);
    let Ok(theirs) = serde_json::from_slice::<Value>(bytes) else {
        assert!(ours.is_err(), "read, though no JSON");
        return;
    };
    let text = std::str::from_utf8(bytes).unwrap();
    let decimals: Vec<Option<Decimal>> = numbers(text).into_iter().map(Decimal::of).collect();
    let fit = decimals
        .iter()
        .all(|number| number.as_ref().is_some_and(Decimal::fits));
    match ours {
        Ok(document) => {
            assert!(theirs.is_object() && !has_twins(bytes) && fit, "{text}");
            assert!(depth(&theirs) <= limits::DEPTH, "{text}");
            read(text, &document, &theirs);
        }
        Err(DocumentError::NotAnObject { .. }) => assert!(!theirs.is_object(), "{text}"),
        Err(DocumentError::DuplicateKey { .. }) => assert!(has_twins(bytes), "{text}"),
        Err(DocumentError::TooDeep { depth: stated, .. }) => {
            assert!(stated > limits::DEPTH, "{text}");
            // The oracle keeps one of two equal names, which need not be the deep one.
            assert!(has_twins(bytes) || depth(&theirs) == stated, "{text}");
        }
        Err(DocumentError::Number { offset, .. }) => {
            assert!(!fit, "{text}");
            let number = text[offset..].starts_with(|c: char| c == '-' || c.is_ascii_digit());
            assert!(number, "{text}: no number at {offset}");
        }
        Err(other) => panic!("{other}: {text}"),
    }
}

/// A parsed document equals its text, in canonical form.
fn read(text: &str, document: &Document, theirs: &Value) {
    let form = document.as_str();
    assert_eq!(
        Document::parse(form).as_ref().map(Document::as_str),
        Ok(form)
    );
    assert_eq!(document.view().to_json(), form);
    canonical(document.view());
    let again: Value = serde_json::from_str(form).unwrap();
    assert!(alike(&again, theirs), "{text} is read as {form}");
    assert_eq!(values(form), values(text), "{text}");
    as_written(text, document);
}

/// Returns the numbers of a text by value, sorted, because the canonical form reorders members.
fn values(text: &str) -> Vec<Decimal> {
    let mut values: Vec<Decimal> = numbers(text).into_iter().filter_map(Decimal::of).collect();
    values.sort();
    values
}

/// The body of an inbox message keeps its digits.
fn as_written(text: &str, document: &Document) {
    let body = Body::parse(text).unwrap();
    assert_eq!(body.document(), document);
    let (mut kept, mut sent) = (numbers(body.as_json()), numbers(text));
    kept.sort_unstable();
    sent.sort_unstable();
    assert_eq!(kept, sent, "{text}");
    assert_eq!(Body::from_parts(document.clone(), body.written()), body);
    assert_eq!(Body::parse(body.as_json()).as_ref(), Ok(&body));
}

/// Checks the canonical form: sorted, distinct names and minimal numbers and strings.
fn canonical(view: View<'_>) {
    let mut last: Option<&str> = None;
    for (index, child) in view.children().enumerate() {
        if view.kind() == Kind::Object {
            let name = child.raw_key();
            assert!(last.is_none_or(|last| last < name), "{name}");
            assert_eq!(
                view.get(&child.key()).map(View::to_json),
                Some(child.to_json())
            );
            last = Some(name);
        } else {
            let found = view.element(index).map(View::to_json);
            assert_eq!(found, Some(child.to_json()));
        }
        canonical(child);
    }
    if let Some(number) = view.as_number() {
        let plain = number.trim_start_matches('-');
        assert!(!number.contains(['e', 'E', '+']), "{number}");
        assert!(
            plain == "0" || plain.starts_with("0.") || !plain.starts_with('0'),
            "{number}"
        );
        assert!(
            !plain.contains('.') || !plain.ends_with(['0', '.']),
            "{number}"
        );
        assert_ne!(number, "-0");
    }
    if let Some(text) = view.as_str() {
        assert_eq!(view.to_json(), serde_json::to_string(&text).unwrap());
    }
}

fn depth(value: &Value) -> usize {
    let below = match value {
        Value::Array(items) => items.iter().map(depth).max(),
        Value::Object(members) => members.values().map(depth).max(),
        _ => None,
    };
    1 + below.unwrap_or(0)
}

/// Compares values with the precision of doubles; digits are compared elsewhere.
fn alike(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            (a - b).abs() <= a.abs() * 1e-14
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| alike(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            let same = |(key, a): (&String, &Value)| b.get(key).is_some_and(|b| alike(a, b));
            a.len() == b.len() && a.iter().all(same)
        }
        _ => one == other,
    }
}
