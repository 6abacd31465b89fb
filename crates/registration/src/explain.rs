//! Explains, for each registration, why it matches a change or not.

use std::collections::HashSet;

use crate::change::Change;
use crate::key::Key;
use crate::leaf::Leaf;
use crate::pattern::alternative::Field;
use crate::pattern::pointer;
use crate::registration::{Changes, On, Registration};
use crate::registrations::{RegistrationId, Registrations};

/// The verdict of one registration on a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    pub id: RegistrationId,
    /// The first condition that does not hold, with the actual value; `None` if the registration matches.
    pub unmet: Option<String>,
}

/// A condition of a registration that was evaluated for a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evaluated {
    /// JSON Pointer of the condition in the registration; for a field of a pattern without the steps of `$or`.
    pub pointer: String,
    /// The tests of a field of a pattern, as JSON.
    pub tests: Option<String>,
    pub holds: bool,
}

/// The conditions of one registration, in the order of evaluation, up to the one that decides.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trace {
    pub evaluated: Vec<Evaluated>,
    /// The same as [`Explanation::unmet`].
    pub unmet: Option<String>,
}

/// Explains a change for each registration, in the order they were loaded.
pub fn explain(registrations: &Registrations, change: &Change<'_>) -> Vec<Explanation> {
    let keys = registrations
        .keys
        .iter()
        .filter(|key| key.is_match(change.key));
    let matching: HashSet<&str> = keys.map(Key::text).collect();
    let explain = |(id, registration)| Explanation {
        id,
        unmet: unmet(
            registration,
            |key| matching.contains(key),
            change,
            &mut |_| {},
        ),
    };
    registrations.iter().map(explain).collect()
}

/// Returns which conditions of a registration hold for a change, and which one decides.
pub fn trace(registrations: &Registrations, id: RegistrationId, change: &Change<'_>) -> Trace {
    let matches = |expected: &str| {
        let mut keys = registrations.keys.iter();
        keys.any(|key| key.text() == expected && key.is_match(change.key))
    };
    let mut evaluated = Vec::new();
    let unmet = unmet(&registrations[id], matches, change, &mut |step: Step<
        '_,
    >| {
        let (pointer, tests) = match step.field {
            Some(field) => (
                format!("{}{}", step.pointer, pointer(&field.path)),
                Some(field.wanted.text().to_owned()),
            ),
            None => (step.pointer.to_owned(), None),
        };
        evaluated.push(Evaluated {
            pointer,
            tests,
            holds: step.holds,
        });
    });
    Trace { evaluated, unmet }
}

/// A condition that is evaluated.
struct Step<'s> {
    pointer: &'s str,
    /// The field, if it is one of a pattern.
    field: Option<&'s Field>,
    holds: bool,
}

/// Returns the first condition that does not hold. Calls `step` with it and with those before.
fn unmet(
    registration: &Registration,
    key_matches: impl Fn(&str) -> bool,
    change: &Change<'_>,
    step: &mut dyn FnMut(Step<'_>),
) -> Option<String> {
    let (on, key) = (&registration.on, change.key);
    let mut check = |pointer: &str, unmet: Option<String>| {
        let holds = unmet.is_none();
        step(Step {
            pointer,
            field: None,
            holds,
        });
        unmet
    };
    let disabled = || "enabled: the registration is disabled".to_owned();
    let unmet = check("/enabled", (!registration.enabled).then(disabled))
        .or_else(|| check("/on/key", key_unmet(on, change, key_matches)))
        .or_else(|| {
            let of_shadow = registration.form.is_of_shadows() && change.shadow.is_none();
            let reason = "the message is made of a shadow";
            let unmet = || format!("as: {reason}, and {key} is not a shadow");
            check("/as", of_shadow.then(unmet))
        })
        .or_else(|| check("/on/state", state_unmet(on, change)))
        .or_else(|| {
            let seen = change.operation;
            let unmet = || format!("on.operations: {seen} is not in the list");
            let listed = on.operations.contains(seen);
            check("/on/operations", (!listed).then(unmet))
        })
        .or_else(|| {
            let only_times = on.changes == Changes::Value && !change.value_changed();
            let unmet = || "on.changes: value, but only timestamps changed".to_owned();
            check("/on/changes", only_times.then(unmet))
        });
    if unmet.is_some() {
        return unmet;
    }
    if let Some(pattern) = &on.pattern {
        let mut field = |field: &Field, holds| {
            step(Step {
                pointer: "/on/pattern",
                field: Some(field),
                holds,
            });
        };
        if let Some((decided, miss)) = pattern.miss(change, &mut |one| field(one, true)) {
            field(&decided, false);
            return Some(format!("on.pattern: {miss}"));
        }
    }
    let miss = on.leaf.as_ref()?.miss(change, on.changes);
    let decided = miss.as_ref().map(|(member, _)| *member);
    for (member, pointer) in Leaf::MEMBERS.into_iter().zip(LEAF_POINTERS) {
        let holds = decided != Some(member);
        step(Step {
            pointer,
            field: None,
            holds,
        });
        if !holds {
            break;
        }
    }
    miss.map(|(member, reason)| format!("on.leaf.{member}: {reason}"))
}

/// The members of a leaf condition in a registration, in the order of [`Leaf::MEMBERS`].
const LEAF_POINTERS: [&str; 4] = [
    "/on/leaf/path",
    "/on/leaf/change",
    "/on/leaf/old",
    "/on/leaf/new",
];

fn key_unmet(on: &On, change: &Change<'_>, matches: impl Fn(&str) -> bool) -> Option<String> {
    let key = change.key;
    match &on.key {
        None if change.shadow.is_none() => {
            let reason = "without a key only shadows match";
            Some(format!("on.key: {reason}, and {key} is not a shadow"))
        }
        Some(expected) if !matches(expected) => {
            Some(format!("on.key: {expected} does not match {key}"))
        }
        _ => None,
    }
}

fn state_unmet(on: &On, change: &Change<'_>) -> Option<String> {
    let state = change.shadow.map(|shadow| shadow.state);
    let expected = on.state.filter(|expected| state != Some(*expected))?;
    Some(match state {
        Some(seen) => format!("on.state: {expected}, but the change is of {seen}"),
        None => format!("on.state: {expected}, but the item is not a shadow"),
    })
}
