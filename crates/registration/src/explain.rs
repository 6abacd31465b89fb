//! Explains, for each registration, why it matches a change or not.

use std::collections::HashSet;
use std::fmt;

use crate::change::Change;
use crate::key::Key;
use crate::pattern::Miss;
use crate::registration::{Changes, Registration};
use crate::registrations::{RegistrationId, Registrations};

/// The verdict of one registration on a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The registration.
    pub id: RegistrationId,
    /// The condition that does not hold; `None` if the registration matches.
    pub unmet: Option<Unmet>,
}

/// The first condition that does not hold, with the actual value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unmet {
    /// The registration is disabled.
    Disabled,
    /// The key does not match.
    Key {
        /// The regular expression.
        expected: String,
        /// The change's key.
        seen: String,
    },
    /// A registration without a key matches shadows only, and the item is not a shadow.
    NotAShadow {
        /// The change's key.
        seen: String,
    },
    /// The form is made of a shadow, and the item is not a shadow.
    Form {
        /// The change's key.
        seen: String,
    },
    /// The change is of the other document.
    State {
        /// The document of the registration.
        expected: &'static str,
        /// The document of the change; `None` if the item is not a shadow.
        seen: Option<&'static str>,
    },
    /// The operation does not match.
    Operation {
        /// The operation of the change.
        seen: &'static str,
    },
    /// Only timestamps changed.
    Changes,
    /// The content does not match the pattern.
    Pattern(Miss),
}

impl fmt::Display for Unmet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unmet::Disabled => f.write_str("enabled: the registration is disabled"),
            Unmet::Key { expected, seen } => write!(f, "on.key: {expected} does not match {seen}"),
            Unmet::NotAShadow { seen } => write!(
                f,
                "on.key: without a key only shadows match, and {seen} is not a shadow"
            ),
            Unmet::Form { seen } => write!(
                f,
                "as: the message is made of a shadow, and {seen} is not a shadow"
            ),
            Unmet::State {
                expected,
                seen: Some(seen),
            } => write!(f, "on.state: {expected}, but the change is of {seen}"),
            Unmet::State {
                expected,
                seen: None,
            } => write!(f, "on.state: {expected}, but the item is not a shadow"),
            Unmet::Operation { seen } => write!(f, "on.operations: {seen} is not in the list"),
            Unmet::Changes => f.write_str("on.changes: value, but only timestamps changed"),
            Unmet::Pattern(miss) => write!(f, "on.pattern: {miss}"),
        }
    }
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
) -> Option<Unmet> {
    let on = &registration.on;
    if !registration.enabled {
        return Some(Unmet::Disabled);
    }
    let seen = || change.key.to_owned();
    match &on.key {
        None if change.shadow.is_none() => return Some(Unmet::NotAShadow { seen: seen() }),
        Some(expected) if !matching.contains(&**expected) => {
            return Some(Unmet::Key {
                expected: expected.to_string(),
                seen: seen(),
            });
        }
        _ => {}
    }
    if registration.form.is_of_shadows() && change.shadow.is_none() {
        return Some(Unmet::Form { seen: seen() });
    }
    if let Some(expected) = on.state {
        let seen = change.shadow.map(|shadow| shadow.state);
        if seen != Some(expected) {
            return Some(Unmet::State {
                expected: expected.as_str(),
                seen: seen.map(|state| state.as_str()),
            });
        }
    }
    if !on.operations.contains(change.operation) {
        return Some(Unmet::Operation {
            seen: change.operation.as_str(),
        });
    }
    if on.changes == Changes::Value && !change.value_changed() {
        return Some(Unmet::Changes);
    }
    on.pattern
        .as_ref()
        .and_then(|pattern| pattern.miss(change))
        .map(Unmet::Pattern)
}
