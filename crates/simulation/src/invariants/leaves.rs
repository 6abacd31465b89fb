//! Registrations with leaf conditions are notified of matching leaves and of nothing else.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::Evidence;
use super::notifications::{Place, bodies, diff, place, readable_changes};
use super::shadows::DocumentChange;
use crate::functions::names;

/// Matched leaves by registration and change.
type Matches = BTreeMap<(&'static str, Place), BTreeSet<String>>;

const REGISTRATIONS: [&str; 3] = ["acknowledged", "withdrawn", "warm"];

pub(super) fn check(evidence: &Evidence<'_>) {
    let devices = evidence.devices.names();
    let is_of_device = |(key, ..): &Place| {
        let mut devices = devices.iter();
        devices.any(|device| key.starts_with(&format!("DS#{device}#")))
    };
    let mut expected = Matches::new();
    let changes = readable_changes(evidence).into_iter();
    for (place, document) in changes.filter(|(place, _)| is_of_device(place)) {
        for registration in REGISTRATIONS {
            let leaves = leaves(registration, &document);
            if !leaves.is_empty() {
                expected.insert((registration, place.clone()), leaves);
            }
        }
    }
    let received = evidence.world.cloud.messages(names::LEAVES).into_iter();
    let mut found = Matches::new();
    for (_, notification) in bodies(received.map(|held| (held.sent_ms, held.body))) {
        let name = |name: &&&str| notification["registration"] == **name;
        let Some(registration) = REGISTRATIONS.iter().find(name) else {
            continue;
        };
        let matched = notification["matched"].as_array().into_iter().flatten();
        let matched = matched.map(Value::to_string).collect();
        let place = place(&notification);
        if is_of_device(&place) {
            found.insert((*registration, place), matched);
        }
    }
    for (change, leaves) in &expected {
        let seen = found.get(change);
        evidence.expect("leaf-conditions-hold", seen == Some(leaves), || {
            format!("{change:?}: {leaves:?} changed, {seen:?} was sent")
        });
    }
    for change in found.keys().filter(|one| !expected.contains_key(one)) {
        let seen = format!("{change:?}: nothing matches");
        evidence.expect("leaf-conditions-hold", false, || seen);
    }
}

/// The leaves that a registration selects, by rules of our own. A setting disappears only when it is reported, and a
/// mode only when it is withdrawn.
fn leaves(registration: &str, document: &DocumentChange<'_>) -> BTreeSet<String> {
    let diff = diff(document);
    let of = |part: &str| diff[part].as_object().cloned().unwrap_or_default();
    let removed = |pointer: &str, change: &str| {
        let old = of("removed").get(pointer).cloned();
        old.map(|old| json!({"path": pointer, "change": change, "old": old}))
    };
    let leaf = match (registration, document.state) {
        ("acknowledged", "desired") => removed("/setting", "acknowledged"),
        ("withdrawn", "desired") => removed("/mode", "removed"),
        ("warm", "reported") => {
            let path = "/temperature";
            let added = of("added").get(path).cloned();
            let added = added.map(|new| json!({"path": path, "change": "added", "new": new}));
            let updated = of("updated").get(path).cloned();
            let updated = updated.map(|both| {
                json!({"path": path, "change": "updated", "old": both["old"], "new": both["new"]})
            });
            let is_warm = |leaf: &Value| leaf["new"]["value"].as_u64() > Some(5);
            added.or(updated).filter(is_warm)
        }
        _ => None,
    };
    leaf.iter().map(Value::to_string).collect()
}
