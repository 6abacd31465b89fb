//! The laws of merging.

use std::collections::BTreeSet;

use antumbra_shadow::{Document, Merged, Mode, Model, Verdict, merge};
use proptest::prelude::*;
use serde_json::{Map, Value};

use super::strategies::{document_of, mode, model, now, pair};
use crate::reference::merge as naive;
use crate::reference::value::{below, ids, is_container, parse};
use crate::{config, verdicts};

fn merged(stored: &Value, sent: &Value, mode: Mode, model: &Model) -> Merged {
    merge(&document_of(stored), &document_of(sent), mode, model, now())
}

fn value_of(document: &Document) -> Value {
    parse(document.as_str())
}

proptest! {
    #![proptest_config(config(450))]

    #[test]
    fn agrees_with_the_reference((stored, sent) in pair(), mode in mode(), model in model()) {
        let ours = merged(&stored, &sent, mode, &model);
        let (stored, sent) = (value_of(&document_of(&stored)), value_of(&document_of(&sent)));
        let theirs = naive::merge(&stored, &sent, mode, &model, now().nanoseconds());
        prop_assert_eq!(&ours.document, &document_of(&theirs.document), "{} and {}", stored, sent);
        let lines: Vec<_> = verdicts(&ours.changes).into_iter().map(|line| naive::Line {
            pointer: line.pointer,
            verdict: line.verdict.as_str(),
            note: line.note,
        }).collect();
        prop_assert_eq!(lines, theirs.verdicts, "{} and {}", stored, sent);
    }

    #[test]
    fn the_same_document_twice_changes_nothing_more((stored, sent) in pair(), mode in mode(), model in model()) {
        let once = merged(&stored, &sent, mode, &model);
        let twice = merge(&once.document, &document_of(&sent), mode, &model, now());
        prop_assert_eq!(once.document.as_str(), twice.document.as_str());
        prop_assert!(!twice.changed());
        prop_assert!(verdicts(&twice.changes).iter().all(|change| !change.verdict.is_change()));
    }

    #[test]
    fn server_is_master_removes_no_path((stored, sent) in pair(), model in model()) {
        let ours = merged(&stored, &sent, Mode::ServerIsMaster, &model);
        prop_assert!(verdicts(&ours.changes).iter().all(|change| change.verdict != Verdict::Removed));
        let replaced: Vec<String> = verdicts(&ours.changes).into_iter()
            .filter(|change| change.verdict == Verdict::Updated)
            .map(|change| change.pointer)
            .collect();
        for (pointer, _) in below("", &stored, &model) {
            let there = ours.document.pointer(&pointer).is_some();
            prop_assert!(there || replaced.iter().any(|above| covers(above, &pointer)), "{} is gone", pointer);
        }
    }

    #[test]
    fn no_value_is_invented((stored, sent) in pair(), mode in mode()) {
        let model = Model::default();
        let stored = labelled(&stored, "stored ", &mut 0);
        let sent = labelled(&sent, "sent ", &mut 0);
        let result = value_of(&merged(&stored, &sent, mode, &model).document);
        let inputs: BTreeSet<(String, String)> = [&stored, &sent].into_iter()
            .flat_map(|input| below("", &value_of(&document_of(input)), &model))
            .map(|(pointer, leaf)| (masked(&pointer), leaf.to_string()))
            .collect();
        let emptied = emptied_elements("", &sent);
        for (pointer, leaf) in below("", &result, &model) {
            let place = masked(&pointer);
            let known = inputs.contains(&(place.clone(), leaf.to_string()));
            let emptied = leaf == Value::Object(Map::new()) && emptied.contains(&place);
            prop_assert!(known || emptied, "{} at {} from {} and {}", leaf, pointer, stored, sent);
        }
    }

    #[test]
    fn verdicts_list_exactly_the_leaves((stored, sent) in pair(), mode in mode()) {
        let model = Model::default();
        // Positions by id are the stored ones, which are the result's unless elements are removed.
        if mode == Mode::ClientIsMaster && has_ids(&stored, &model) && has_ids(&sent, &model) {
            return Ok(());
        }
        let ours = merged(&stored, &sent, mode, &model);
        let result = value_of(&ours.document);
        let mut listed = BTreeSet::new();
        let mut gone = Vec::new();
        for change in verdicts(&ours.changes) {
            if change.verdict == Verdict::Removed {
                prop_assert!(document_of(&stored).pointer(&change.pointer).is_some());
                gone.push(change.pointer);
                continue;
            }
            let value = result.pointer(&change.pointer);
            prop_assert!(value.is_some(), "{} is not in {}", change.pointer, result);
            prop_assert!(listed.insert(change.pointer.clone()), "{} is listed twice", change.pointer);
        }
        for (pointer, leaf) in below("", &result, &model) {
            let covered = listed.iter().any(|above| covers(above, &pointer));
            let emptied = is_container(&leaf) && gone.iter().any(|below| covers(&pointer, below));
            prop_assert!(covered || emptied, "{} has no verdict", pointer);
        }
        for pointer in &listed {
            let above = listed.iter().filter(|above| *above != pointer && covers(above, pointer)).count();
            prop_assert_eq!(above, 0, "{} is listed, and so is something above it", pointer);
        }
    }

    #[test]
    fn each_verdict_holds_both_values((stored, sent) in pair(), mode in mode(), model in model()) {
        let (stored, ours) = (document_of(&stored), merged(&stored, &sent, mode, &model));
        for change in verdicts(&ours.changes) {
            let at = stored.pointer(&change.pointer).map(|view| view.to_json());
            let (old, new, (old_time, new_time)) = (change.old, change.new, change.times);
            match change.verdict {
                Verdict::Added => prop_assert!(old.is_none() && new.is_some()),
                Verdict::Removed => prop_assert!(old == at && new.is_none()),
                Verdict::Unsent => prop_assert!(old == at),
                Verdict::Updated => prop_assert!(old == at && new.is_some() && old != new),
                Verdict::Same => prop_assert!(old == at && old == new),
                Verdict::Future => prop_assert!(old.is_none() || old == at),
                Verdict::Stale => {
                    prop_assert!(old == at && new_time.is_some() && new_time < old_time);
                }
                Verdict::Equal => {
                    prop_assert!(old == at && new_time.is_some() && new_time == old_time);
                }
            }
        }
        let changes = verdicts(&ours.changes).iter().any(|change| change.verdict.is_change());
        prop_assert_eq!(changes, ours.changed());
        prop_assert_eq!(stored != ours.document, ours.changed());
    }
}

/// Returns `true` if `pointer` is `above` or below it.
fn covers(above: &str, pointer: &str) -> bool {
    pointer
        .strip_prefix(above)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A pointer without positions: elements matched by id move.
fn masked(pointer: &str) -> String {
    let part = |part: &str| {
        if part.parse::<usize>().is_ok() {
            "#".to_owned()
        } else {
            part.to_owned()
        }
    };
    pointer.split('/').map(part).collect::<Vec<_>>().join("/")
}

/// The same document with distinct scalars, except nulls, ids and times.
fn labelled(value: &Value, label: &str, count: &mut u32) -> Value {
    let mut next = |value: &Value| labelled(value, label, count);
    match value {
        Value::Null => Value::Null,
        Value::Array(items) => items.iter().map(next).collect(),
        Value::Object(members) => {
            let fixed = |key: &str, value: &Value| {
                (key == "id" || key == "timestamp") && !is_container(value)
            };
            let member = |(key, value): (&String, &Value)| {
                let value = if fixed(key, value) {
                    value.clone()
                } else {
                    next(value)
                };
                (key.clone(), value)
            };
            members.iter().map(member).collect()
        }
        _ => {
            *count += 1;
            format!("{label}{count}").into()
        }
    }
}

/// Pointers of sent elements that may become empty because a member is null.
fn emptied_elements(path: &str, sent: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for item in sent.as_array().into_iter().flatten() {
        let place = format!("{path}/#");
        if item.as_object().is_some_and(|members| !members.is_empty()) {
            found.insert(place.clone());
        }
        found.extend(emptied_elements(&place, item));
    }
    for (key, value) in sent.as_object().into_iter().flatten() {
        let key = key.replace('~', "~0").replace('/', "~1");
        found.extend(emptied_elements(&format!("{path}/{key}"), value));
    }
    found
}

/// Returns `true` if some array of elements with ids is in it.
fn has_ids(value: &Value, model: &Model) -> bool {
    match value {
        Value::Array(items) => {
            !items.is_empty() && ids(items, model).is_some()
                || items.iter().any(|item| has_ids(item, model))
        }
        Value::Object(members) => members.values().any(|member| has_ids(member, model)),
        _ => false,
    }
}
