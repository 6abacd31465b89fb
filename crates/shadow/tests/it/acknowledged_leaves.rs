//! The record of acknowledged leaves names exactly the stored leaves that the acknowledgement removed.

use antumbra_shadow::{
    AcknowledgedLeaves, Document, Mode, Model, Timestamp, acknowledge, diff, merge,
};
use proptest::prelude::*;
use serde_json::{Value, json};

fn document(json: &str) -> Document {
    Document::parse(json).unwrap()
}

/// The pointers of the acknowledged leaves among the removed ones, after a round trip through the record.
fn acknowledged(stored: &str, updated: &str, left: &str) -> Vec<String> {
    let model = Model::default();
    let (stored, updated, left) = (document(stored), document(updated), document(left));
    let Some(leaves) = AcknowledgedLeaves::between(&stored, &updated, &left, &model) else {
        return Vec::new();
    };
    let text = leaves.encode(5);
    assert_eq!(AcknowledgedLeaves::decode(&text, 5), Some(leaves));
    assert_eq!(AcknowledgedLeaves::decode(&text, 6), None);
    let nodes = AcknowledgedLeaves::decode(&text, 5)
        .unwrap()
        .nodes(stored.view());
    let diff = diff(stored.view(), left.view(), &model);
    let removed = diff.removed();
    removed
        .filter(|(_, old)| nodes.contains(*old))
        .map(|(pointer, _)| pointer.to_string())
        .collect()
}

#[test]
fn withdrawn_and_acknowledged_leaves_are_told_apart() {
    for (stored, updated, left, expected) in [
        ("{}", "{}", "{}", vec![]),
        (
            r#"{"a":1,"b":2}"#,
            r#"{"a":1,"b":2}"#,
            r#"{"b":2}"#,
            vec!["/a"],
        ),
        (r#"{"a":1,"b":2}"#, r#"{"b":2}"#, r#"{"b":2}"#, vec![]),
        (r#"{"a":1,"b":2}"#, r#"{"a":1}"#, "{}", vec!["/a"]),
        (
            r#"{"a":1,"b":2,"c":3}"#,
            r#"{"a":1,"c":3}"#,
            "{}",
            vec!["/a", "/c"],
        ),
        // The value that was reached is another than the stored one.
        (r#"{"a":1,"b":2}"#, r#"{"a":9}"#, "{}", vec!["/a"]),
        // What an object held is withdrawn when the object is replaced.
        (
            r#"{"a":{"x":1},"b":2}"#,
            r#"{"a":{},"b":2}"#,
            "{}",
            vec!["/b"],
        ),
        (r#"{"a":{"x":1}}"#, r#"{"a":5}"#, "{}", vec![]),
        (
            r#"{"a":{"x":1,"y":2}}"#,
            r#"{"a":{"y":2}}"#,
            "{}",
            vec!["/a/y"],
        ),
        (
            r#"{"l":[{"id":"p","x":1},{"id":"q","x":1}],"m":1}"#,
            r#"{"l":[{"id":"q","x":1}],"m":1}"#,
            r#"{"m":1}"#,
            vec!["/l/1/id", "/l/1/x"],
        ),
        (
            r#"{"t":{"timestamp":1700000000,"value":1},"u":1}"#,
            r#"{"t":{"timestamp":1700000000,"value":1}}"#,
            "{}",
            vec!["/t"],
        ),
    ] {
        let found = acknowledged(stored, updated, left);
        assert_eq!(found, expected, "{stored} {updated} {left}");
    }
}

#[test]
fn records_that_cannot_be_read_are_none() {
    for text in [
        "",
        "x",
        "5:",
        "5:1",
        "5:1+",
        "5:+1",
        "5:1+1,",
        "5:4294967295+1",
        "5:-1+1",
        ":1+1",
    ] {
        assert_eq!(AcknowledgedLeaves::decode(text, 5), None, "{text}");
    }
}

fn value() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        (0i64..3).prop_map(Value::from),
        any::<bool>().prop_map(Value::from)
    ];
    scalar.prop_recursive(3, 16, 3, |inner| {
        let name = proptest::sample::select(&["a", "b", "c"][..]).prop_map(str::to_owned);
        let members = proptest::collection::btree_map(name, inner, 1..4);
        members.prop_map(|members| Value::Object(members.into_iter().collect()))
    })
}

fn object() -> impl Strategy<Value = Value> {
    value().prop_map(|value| match value.is_object() {
        true => value,
        false => json!({ "a": value }),
    })
}

/// Replaces some values by null, which withdraws them.
fn patch() -> impl Strategy<Value = Value> {
    object().prop_map(|mut value| {
        fn withdraw(value: &mut Value) {
            match value {
                Value::Bool(true) => *value = Value::Null,
                Value::Object(members) => members.values_mut().for_each(withdraw),
                _ => {}
            }
        }
        withdraw(&mut value);
        value
    })
}

proptest! {
    /// Leaf by leaf: a stored leaf that is missing at the end is acknowledged if the update itself left a value at its
    /// place, and withdrawn otherwise.
    #[test]
    fn records_agree_with_a_comparison_leaf_by_leaf(
        stored in object(),
        patch in patch(),
        reported in object(),
    ) {
        let (model, now) = (Model::default(), Timestamp::from_nanoseconds(0));
        let [stored, patch, reported] = [stored, patch, reported].map(|value| document(&value.to_string()));
        let updated = merge(&stored, &patch, Mode::Patch, &model, now).document;
        let left = acknowledge(&reported, &updated, &model).desired;
        let diff = diff(stored.view(), left.view(), &model);
        let expected: Vec<String> = diff
            .removed()
            .map(|(pointer, _)| pointer.to_string())
            .filter(|pointer| updated.view().pointer(pointer).is_some())
            .collect();
        prop_assert_eq!(acknowledged(stored.as_str(), updated.as_str(), left.as_str()), expected);
    }
}
