//! Explains, for each registration, why it matches a change or not.

use std::collections::HashSet;

use crate::change::Change;
use crate::key::Key;
use crate::registration::{Changes, Registration};
use crate::registrations::{RegistrationId, Registrations};

/// The verdict of one registration on a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    pub id: RegistrationId,
    /// The first condition that does not hold, with the actual value; `None` if the registration matches.
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
        unmet: unmet(registration, &matching, change),
    };
    registrations.iter().map(explain).collect()
}

fn unmet(
    registration: &Registration,
    matching: &HashSet<&str>,
    change: &Change<'_>,
) -> Option<String> {
    let (on, key) = (&registration.on, change.key);
    if !registration.enabled {
        return Some("enabled: the registration is disabled".to_owned());
    }
    match &on.key {
        None if change.shadow.is_none() => {
            let reason = "without a key only shadows match";
            return Some(format!("on.key: {reason}, and {key} is not a shadow"));
        }
        Some(expected) if !matching.contains(&**expected) => {
            return Some(format!("on.key: {expected} does not match {key}"));
        }
        _ => {}
    }
    if registration.form.is_of_shadows() && change.shadow.is_none() {
        let reason = "the message is made of a shadow";
        return Some(format!("as: {reason}, and {key} is not a shadow"));
    }
    let state = change.shadow.map(|shadow| shadow.state);
    if let Some(expected) = on.state.filter(|expected| state != Some(*expected)) {
        return Some(match state {
            Some(seen) => format!("on.state: {expected}, but the change is of {seen}"),
            None => format!("on.state: {expected}, but the item is not a shadow"),
        });
    }
    if !on.operations.contains(change.operation) {
        let seen = change.operation;
        return Some(format!("on.operations: {seen} is not in the list"));
    }
    if on.changes == Changes::Value && !change.value_changed() {
        return Some("on.changes: value, but only timestamps changed".to_owned());
    }
    if let Some(miss) = on.pattern.as_ref().and_then(|pattern| pattern.miss(change)) {
        return Some(format!("on.pattern: {miss}"));
    }
    let miss = on.leaf.as_ref()?.miss(change, on.changes)?;
    Some(format!("on.leaf.{miss}"))
}
