//! Shared patterns match the same as each pattern alone.

use antumbra_registration::Registrations;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::support::{Given, load};

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3i64..4).prop_map(Value::from),
        Just(json!(0.5)),
        "[xyX]{0,3}".prop_map(Value::from),
        prop_oneof![
            Just("10.0.0.1"),
            Just("10.0.0.9"),
            Just("::1"),
            Just("ß"),
            Just("SS"),
            Just("é")
        ]
        .prop_map(Value::from),
    ]
}

fn document() -> impl Strategy<Value = Value> {
    let value = scalar().prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            object(inner)
        ]
    });
    object(value)
}

fn object(value: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    proptest::collection::vec((proptest::sample::select(&NAMES[..]), value), 0..4).prop_map(
        |members| {
            Value::Object(
                members
                    .into_iter()
                    .map(|(name, value)| (name.to_owned(), value))
                    .collect(),
            )
        },
    )
}

fn test() -> impl Strategy<Value = Value> {
    let text = || "[xy]{0,2}";
    prop_oneof![
        4 => scalar(),
        1 => text().prop_map(|text| json!({"prefix": text})),
        1 => text().prop_map(|text| json!({"suffix": text})),
        1 => text().prop_map(|text| json!({"equals-ignore-case": text})),
        1 => Just(json!({"equals-ignore-case": "ß"})),
        1 => text().prop_map(|text| json!({"prefix": {"equals-ignore-case": text}})),
        1 => text().prop_map(|text| json!({"suffix": {"equals-ignore-case": text}})),
        1 => ("[xy]{0,1}", "[xy]{0,1}").prop_map(|(a, b)| json!({"wildcard": format!("{a}*{b}")})),
        1 => "[xy]{1,2}".prop_map(|text| json!({"wildcard": format!("*{text}*")})),
        1 => (-3i64..4).prop_map(|number| json!({"numeric": [">", number]})),
        1 => (-3i64..4).prop_map(|number| json!({"numeric": ["<=", number]})),
        1 => (-3i64..3).prop_map(|number| json!({"numeric": [">=", number, "<", number + 1]})),
        1 => Just(json!({"cidr": "10.0.0.0/30"})),
        2 => any::<bool>().prop_map(|there| json!({"exists": there})),
        1 => text().prop_map(|text| json!({"anything-but": [text, "x"]})),
        1 => (-3i64..4).prop_map(|number| json!({"anything-but": number})),
        1 => "[xy]{1,2}".prop_map(|text| json!({"anything-but": {"prefix": text}})),
        1 => "[xy]{1,2}".prop_map(|text| json!({"anything-but": {"wildcard": format!("*{text}")}})),
    ]
}

fn pattern() -> impl Strategy<Value = Value> {
    let field = proptest::collection::vec(test(), 1..3).prop_map(Value::from);
    let nested = field.prop_recursive(3, 10, 3, |inner| {
        let members =
            proptest::collection::btree_map(proptest::sample::select(&NAMES[..]), inner, 1..3);
        let plain = members.prop_map(|members| {
            Value::Object(
                members
                    .into_iter()
                    .map(|(name, value)| (name.to_owned(), value))
                    .collect(),
            )
        });
        (plain, any::<u8>()).prop_map(|(object, dice)| {
            match (dice % 5, object.as_object().map(Map::len)) {
                (0, Some(2)) => {
                    let branches: Vec<Value> = object
                        .as_object()
                        .unwrap()
                        .iter()
                        .map(|(name, value)| json!({ name: value }))
                        .collect();
                    json!({ "$or": branches })
                }
                _ => object,
            }
        })
    });
    let side = prop_oneof![Just("old"), Just("new")];
    let root = (side, nested).prop_filter("documents are objects", |(_, value)| value.is_object());
    root.prop_map(|(side, value)| json!({ side: value }))
}

fn loads(pattern: &Value) -> bool {
    let text = json!({"name": "r", "on": {"pattern": pattern}, "to": {"clients": {}}}).to_string();
    Registrations::load([("r.json", text)], &|_| None).is_ok()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn shared_patterns_match_as_single_ones(
        patterns in proptest::collection::vec(pattern().prop_filter("asks once", loads), 8..24),
        changes in proptest::collection::vec((document(), document()), 1..8),
    ) {
        let ons: Vec<String> = patterns.iter().map(|pattern| json!({ "pattern": pattern }).to_string()).collect();
        let together = load(&ons);
        let alone: Vec<Registrations> = ons.iter().map(|on| load([on])).collect();
        for (old, new) in &changes {
            let given = Given::new(&new.to_string()).with_old(&old.to_string());
            let expected: Vec<usize> = (0..alone.len()).filter(|at| !given.planned(&alone[*at]).is_empty()).collect();
            prop_assert_eq!(given.planned(&together), expected, "{} {} {:#?}", old, new, ons);
        }
    }
}
