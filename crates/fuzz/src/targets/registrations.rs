//! Registration files: valid ones obey the published schema, and explain agrees with plan.

use std::sync::LazyLock;

use antumbra_registration::{
    Change, DiffCell, KeyAttributes, KeyMatches, Operation, Registrations, Scratch, ShadowRef,
    State, explain, plan,
};
use antumbra_shadow::{AcknowledgedLeaves, Document, Model};
use serde_json::Value;

static SCHEMA: LazyLock<jsonschema::Validator> = LazyLock::new(|| {
    let text = include_str!("../../../../registrations/registration.schema.json");
    jsonschema::validator_for(&serde_json::from_str(text).unwrap()).unwrap()
});

/// Changes of all kinds: key, whether it is a shadow, old, new.
const CHANGES: [(&str, bool, Option<&str>, Option<&str>); 5] = [
    (
        "DS#device#DSR#main",
        true,
        Some(r#"{"a":1,"b":{"timestamp":1700000000,"value":7},"e":{"f":1,"g":2}}"#),
        Some(r#"{"a":2,"b":{"timestamp":1700000001,"value":7},"c":["x",{"d":null}]}"#),
    ),
    (
        "DS#My House#Lamp#DSD#light",
        true,
        None,
        Some(r#"{"on":true,"temp":21.5,"ip":"10.0.0.1"}"#),
    ),
    (
        "DS#device#DSR#main",
        true,
        Some(r#"{"firmware":"1.2.3"}"#),
        None,
    ),
    (
        "SENSOR#0xA#STATE",
        false,
        Some(r#"{"state":"lost"}"#),
        Some(r#"{"state":"back"}"#),
    ),
    ("", false, None, None),
];

pub(crate) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let env = |name: &str| (name != "MISSING").then(|| format!("value-of-{name}"));
    let registrations = match Registrations::load([("r.json", text)], &env) {
        Ok(registrations) => registrations,
        Err(errors) => {
            assert!(!errors.problems.is_empty());
            for problem in &errors.problems {
                assert_eq!(problem.file, "r.json");
                assert!(!problem.reason.is_empty());
            }
            return;
        }
    };
    assert_eq!(registrations.len(), 1);
    let plain: Value = serde_json::from_str(text).unwrap();
    if let Err(error) = SCHEMA.validate(&plain) {
        panic!("loads, but the schema says {error}: {text}");
    }
    for (key, shadow, old, new) in CHANGES {
        let document = |text: Option<&str>| text.map(|text| Document::parse(text).unwrap());
        let (old, new) = (document(old), document(new));
        with_change(key, shadow, old.as_ref(), new.as_ref(), |change| {
            agree(&registrations, change);
        });
    }
}

/// Calls with a change of these documents.
pub(super) fn with_change<R>(
    key: &str,
    shadow: bool,
    old: Option<&Document>,
    new: Option<&Document>,
    then: impl FnOnce(&Change<'_>) -> R,
) -> R {
    let model = Model::default();
    let (old, new) = (old.map(Document::view), new.map(Document::view));
    let diff = DiffCell::new(old, new, &model);
    // Half of the values that the first change removes are acknowledged.
    let acknowledged = AcknowledgedLeaves::decode("2:1+1", 2);
    let acknowledged = acknowledged.zip(old).map(|(leaves, old)| leaves.nodes(old));
    let change = Change {
        key,
        key_attributes: KeyAttributes::default(),
        shadow: shadow.then_some(ShadowRef {
            id: "device",
            name: "main",
            state: State::Reported,
        }),
        operation: match (old, new) {
            (None, _) => Operation::Insert,
            (_, None) => Operation::Remove,
            _ => Operation::Modify,
        },
        expired: false,
        version: Some(2),
        previous_version: Some(1),
        client_token: Some("token"),
        timestamp: Some(1_731_700_000_000_000_000),
        old,
        new,
        diff: &diff,
        acknowledged: acknowledged.as_ref(),
    };
    then(&change)
}

/// Returns the registrations that match a change, after checking that plan, explain and prefilter agree.
pub(super) fn agree(registrations: &Registrations, change: &Change<'_>) -> Vec<bool> {
    let mut scratch = Scratch::default();
    let planned = plan(registrations, change, &mut scratch).to_vec();
    assert_eq!(plan(registrations, change, &mut scratch), planned);
    let explained = explain(registrations, change);
    assert_eq!(explained.len(), registrations.len());
    let met = |one: &antumbra_registration::Explanation| {
        let met = one.unmet.is_none();
        assert_eq!(met, planned.contains(&one.id), "{:?}", one.unmet);
        met
    };
    let met: Vec<bool> = explained.iter().map(met).collect();
    if met.contains(&true) {
        let shadow = change.shadow.is_some();
        assert!(KeyMatches::default().find(registrations, change.key, shadow));
    }
    met
}
