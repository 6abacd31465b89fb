//! Leaf conditions: compared with a plain, slow implementation.

use antumbra_registration::{Registrations, Scratch, plan};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{Given, load};

const NAMES: [&str; 6] = ["a", "ab", "b", "a*", "x/y", "~\\\""];

/// A changed value: pointer, kind of change, old and new.
#[derive(Debug, Clone, PartialEq)]
struct Changed {
    path: String,
    kind: String,
    old: Option<Value>,
    new: Option<Value>,
}

/// All changed values, read from the JSON of the diff.
fn changed(diff: &Value, acknowledged: bool) -> Vec<Changed> {
    let removed = if acknowledged {
        "acknowledged"
    } else {
        "removed"
    };
    let part = |name: &str, kind: &str| -> Vec<Changed> {
        let leaves = diff[name].as_object().unwrap().iter();
        let leaf = |(path, value): (&String, &Value)| Changed {
            path: path.clone(),
            kind: kind.to_owned(),
            old: match name {
                "added" => None,
                "updated" => Some(value["old"].clone()),
                _ => Some(value.clone()),
            },
            new: match name {
                "added" => Some(value.clone()),
                "updated" => Some(value["new"].clone()),
                _ => None,
            },
        };
        leaves.map(leaf).collect()
    };
    [
        part("added", "added"),
        part("updated", "updated"),
        part("removed", removed),
    ]
    .concat()
}

/// Returns `true` if the segments of a path match the tokens of a pointer.
fn path_matches(segments: &[&str], tokens: &[&str]) -> bool {
    match (segments, tokens) {
        ([], []) => true,
        (["**", rest @ ..], tokens) => {
            (0..=tokens.len()).any(|skipped| path_matches(rest, &tokens[skipped..]))
        }
        ([segment, rest @ ..], [token, tokens @ ..]) => {
            let token = token.replace("~1", "/").replace("~0", "~");
            let segment = segment.replace("~1", "/").replace("~0", "~");
            glob(&segment, &token) && path_matches(rest, tokens)
        }
        _ => false,
    }
}

fn glob(pattern: &str, text: &str) -> bool {
    let mut characters = pattern.chars();
    match characters.next() {
        None => text.is_empty(),
        Some('*') => {
            let rest = characters.as_str();
            (0..=text.len()).any(|at| text.is_char_boundary(at) && glob(rest, &text[at..]))
        }
        Some('\\') => {
            let literal = characters.next().unwrap();
            let rest = text.strip_prefix(literal);
            rest.is_some_and(|rest| glob(characters.as_str(), rest))
        }
        Some(literal) => {
            let rest = text.strip_prefix(literal);
            rest.is_some_and(|rest| glob(characters.as_str(), rest))
        }
    }
}

/// Returns `true` if a value passes one of the tests: a scalar, `numeric` above a number, or `exists`.
fn value_matches(pattern: &Value, value: Option<&Value>) -> bool {
    let Value::Array(tests) = pattern else {
        let field = |(name, tests): (&String, &Value)| {
            let value = value.and_then(|value| value.get(name));
            value_matches(tests, value)
        };
        // A pattern of fields does not match a scalar or an array.
        return pattern.as_object().unwrap().iter().all(field);
    };
    let scalars: Vec<&Value> = match value {
        None | Some(Value::Object(_)) => Vec::new(),
        Some(value) => vec![value],
    };
    tests.iter().any(|test| match test {
        Value::Object(operator) => match operator.iter().next().unwrap() {
            (name, Value::Bool(exists)) if name == "exists" => *exists != scalars.is_empty(),
            (_, bounds) => scalars
                .iter()
                .any(|value| value.as_i64() > bounds[1].as_i64()),
        },
        plain => scalars.contains(&plain),
    })
}

/// The changed values that a condition matches, the slow way.
fn expected(leaf: &Value, changed: &[Changed]) -> Vec<Changed> {
    let segments: Vec<&str> = leaf["path"].as_str().unwrap()[1..].split('/').collect();
    let holds = |one: &&Changed| {
        let tokens: Vec<&str> = one.path[1..].split('/').collect();
        let kinds = leaf.get("change").and_then(Value::as_array);
        let side = |name: &str, value: &Option<Value>| {
            let pattern = leaf.get(name);
            pattern.is_none_or(|pattern| value_matches(pattern, value.as_ref()))
        };
        path_matches(&segments, &tokens)
            && kinds.is_none_or(|kinds| kinds.iter().any(|kind| *kind == one.kind))
            && side("old", &one.old)
            && side("new", &one.new)
    };
    changed.iter().filter(holds).cloned().collect()
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0i64..4).prop_map(Value::from),
        Just(json!("on")),
    ]
}

/// Objects without arrays, whose elements have positions that the corpus tests.
fn document() -> impl Strategy<Value = Value> {
    let member = || proptest::sample::select(&NAMES[..]).prop_map(str::to_owned);
    let timed = (0i64..3, 0i64..4)
        .prop_map(|(time, value)| json!({ "timestamp": 1_731_700_000 + time, "value": value }));
    let value = prop_oneof![3 => scalar().boxed(), 1 => timed.boxed()];
    let object = value.prop_recursive(3, 24, 4, move |inner| {
        let members = proptest::collection::btree_map(member(), inner, 0..4);
        members.prop_map(|members| Value::Object(members.into_iter().collect()))
    });
    object.prop_map(|value| match value.get("timestamp") {
        None if value.is_object() => value,
        _ => json!({ "a": value }),
    })
}

fn path() -> impl Strategy<Value = String> {
    let segment = proptest::sample::select(
        &[
            "a", "ab", "*", "a*", "*b", "**", "a\\*", "x~1y", "~0*", "x*y",
        ][..],
    );
    proptest::collection::vec(segment, 1..5).prop_map(|mut segments| {
        segments.dedup_by(|next, last| *next == "**" && *last == "**");
        segments
            .iter()
            .map(|segment| format!("/{segment}"))
            .collect()
    })
}

fn value_pattern() -> impl Strategy<Value = Value> {
    let test = prop_oneof![
        scalar(),
        (0i64..4).prop_map(|number| json!({ "numeric": [">", number] })),
        any::<bool>().prop_map(|exists| json!({ "exists": exists })),
    ];
    let tests = proptest::collection::vec(test, 1..3).prop_map(Value::from);
    (tests, any::<bool>()).prop_map(|(tests, in_field)| match in_field {
        true => json!({ "value": tests }),
        false => tests,
    })
}

fn leaf() -> impl Strategy<Value = Value> {
    let kinds =
        proptest::sample::subsequence(vec!["added", "updated", "removed", "acknowledged"], 1..=4);
    let optional = || proptest::option::weighted(0.3, value_pattern());
    (path(), proptest::option::of(kinds), optional(), optional()).prop_map(
        |(path, kinds, old, new)| {
            let mut leaf = json!({ "path": path });
            for (name, value) in [
                ("change", kinds.map(|kinds| json!(kinds))),
                ("old", old),
                ("new", new),
            ] {
                if let Some(value) = value {
                    leaf[name] = value;
                }
            }
            leaf
        },
    )
}

/// The leaves that a registration lists in its notifications.
fn matched(given: &Given, registrations: &Registrations, number: usize) -> Vec<Changed> {
    let (_, registration) = registrations.iter().nth(number).unwrap();
    given.with(|change, _| {
        let mut found = Vec::new();
        registration.each_matched_leaf(change, &mut |leaf| {
            let value =
                |view: antumbra_shadow::View<'_>| serde_json::from_str(&view.to_json()).unwrap();
            found.push(Changed {
                path: leaf.pointer.to_string(),
                kind: leaf.change.to_string(),
                old: leaf.old.map(value),
                new: leaf.new.map(value),
            });
        });
        found
    })
}

fn sorted(mut leaves: Vec<Changed>) -> Vec<Changed> {
    leaves.sort_by(|a, b| (&a.path, &a.kind).cmp(&(&b.path, &b.kind)));
    leaves
}

/// Conditions beside that on a leaf.
fn other_conditions() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => Just(json!({})),
        1 => Just(json!({ "operations": ["insert", "modify"] })),
        1 => Just(json!({ "operations": ["remove"] })),
        1 => Just(json!({ "state": "reported" })),
        1 => Just(json!({ "state": "desired" })),
    ]
}

impl Given {
    fn meets(&self, others: &Value) -> bool {
        self.with(|change, _| {
            let names = others["operations"].as_array();
            let operation = json!(change.operation.to_string());
            let state = change.shadow.map(|shadow| json!(shadow.state.as_str()));
            names.is_none_or(|names| names.contains(&operation))
                && (others["state"].is_null() || Some(&others["state"]) == state.as_ref())
        })
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn leaf_conditions_match_as_the_slow_implementation(
        leaves in proptest::collection::vec((leaf(), other_conditions()), 1..20),
        changes in proptest::collection::vec((document(), document(), any::<bool>()), 1..6),
    ) {
        let on = |(leaf, others): &(Value, Value), pattern: Option<Value>| {
            let mut on = others.clone();
            on["leaf"] = leaf.clone();
            if let Some(pattern) = pattern {
                on["pattern"] = pattern;
            }
            on.to_string()
        };
        let together = load(leaves.iter().map(|leaf| on(leaf, None)));
        let pattern = json!({ "operation": ["modify"] });
        let with_pattern = load(leaves.iter().map(|leaf| on(leaf, Some(pattern.clone()))));
        let mut scratch = Scratch::default();
        for (old, new, acknowledged) in &changes {
            let mut given = Given::new(&new.to_string()).with_old(&old.to_string());
            if *acknowledged {
                given = given.acknowledged();
            }
            let diff = given.with(|change, _| serde_json::to_value(change.diff.diff()).unwrap());
            let changed = changed(&diff, *acknowledged);
            let expected: Vec<Vec<Changed>> = leaves.iter().map(|(leaf, _)| expected(leaf, &changed)).collect();
            for registrations in [&together, &with_pattern] {
                let planned = given.with(|change, _| plan(registrations, change, &mut scratch).to_vec());
                let planned: Vec<String> = planned.iter().map(|id| registrations[*id].name.to_string()).collect();
                let holds = |at: &usize| !expected[*at].is_empty() && given.meets(&leaves[*at].1);
                let holding = (0..leaves.len()).filter(holds);
                let holding: Vec<String> = holding.map(|at| format!("r{at}")).collect();
                prop_assert_eq!(planned, holding, "{} {} {:?}", old, new, leaves);
            }
            for (number, expected) in expected.iter().enumerate() {
                let found = sorted(matched(&given, &together, number));
                prop_assert_eq!(&found, &sorted(expected.clone()), "{}", leaves[number].0);
            }
        }
    }
}

#[test]
fn other_registrations_compute_no_diff_for_a_leaf_condition_that_cannot_match() {
    let registrations = load([
        r#"{"state":"desired","leaf":{"path":"/**"}}"#,
        r#"{"operations":["remove"],"leaf":{"path":"/**"}}"#,
        r#"{"key":"^SENSOR#","leaf":{"path":"/**"}}"#,
    ]);
    let given = Given::new(r#"{"a":2}"#).with_old(r#"{"a":1}"#);
    let computed = given.with(|change, diff| {
        plan(&registrations, change, &mut Scratch::default());
        diff.is_computed()
    });
    assert!(!computed);
}

/// A name of 60 KB above 4,000 leaves: pointers would have 240 MB.
#[test]
fn long_names_above_many_leaves_are_walked_once() {
    let name = "n".repeat(60_000);
    let members: Vec<String> = (0..4_000)
        .map(|number| format!(r#""{number}":1"#))
        .collect();
    let document = format!(r#"{{"{name}":{{{}}}}}"#, members.join(","));
    let ons = (0..200).map(|number| format!(r#"{{"leaf":{{"path":"/n*/{number}x"}}}}"#));
    let registrations = load(ons.chain([r#"{"leaf":{"path":"/n*/3999"}}"#.to_owned()]));
    let given = Given::new(&document).with_old("{}");
    let started = std::time::Instant::now();
    assert_eq!(given.planned(&registrations), [200]);
    assert!(started.elapsed().as_secs() < 5, "{:?}", started.elapsed());
}
