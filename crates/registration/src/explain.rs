//! Explain: for each registration, why a change goes there or does not.

use std::collections::HashSet;
use std::fmt;

use crate::change::Change;
use crate::key::Key;
use crate::pattern::Miss;
use crate::registration::{Changes, Registration};
use crate::registrations::{RegistrationId, Registrations};

/// What one registration makes of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The registration.
    pub id: RegistrationId,
    /// Why the change does not go there; `None` if it does.
    pub unmet: Option<Unmet>,
}

/// The first condition that does not hold, with what was seen instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unmet {
    /// It is not in force.
    Disabled,
    /// Another key.
    Key {
        /// The regular expression.
        expected: String,
        /// The change's key.
        seen: String,
    },
    /// Without a key, a registration is about shadows, and the item is none.
    NotAShadow {
        /// The change's key.
        seen: String,
    },
    /// The form is made of a shadow, and the item is none.
    Form {
        /// The change's key.
        seen: String,
    },
    /// The other document.
    State {
        /// Which it must be.
        expected: &'static str,
        /// Which it is; `None` if the item is no shadow.
        seen: Option<&'static str>,
    },
    /// Another operation.
    Operation {
        /// What happened.
        seen: &'static str,
    },
    /// Nothing but timestamps changed.
    Changes,
    /// The content is not as the pattern says.
    Pattern(Miss),
}

impl fmt::Display for Unmet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unmet::Disabled => f.write_str("enabled: it is not in force"),
            Unmet::Key { expected, seen } => write!(f, "on.key: {expected} does not match {seen}"),
            Unmet::NotAShadow { seen } => write!(
                f,
                "on.key: without one it is about shadows, and {seen} is none"
            ),
            Unmet::Form { seen } => write!(f, "as: it is made of a shadow, and {seen} is none"),
            Unmet::State {
                expected,
                seen: Some(seen),
            } => write!(f, "on.state: {expected}, but it is {seen}"),
            Unmet::State {
                expected,
                seen: None,
            } => write!(f, "on.state: {expected}, but the item is no shadow"),
            Unmet::Operation { seen } => write!(f, "on.operations: {seen} is not among them"),
            Unmet::Changes => f.write_str("on.changes: value, but only timestamps changed"),
            Unmet::Pattern(miss) => write!(f, "on.pattern: {miss}"),
        }
    }
}

/// What each registration makes of a change, in the order they were loaded.
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
