//! Patterns: conditions on the content of a change, in EventBridge's language.
//!
//! A pattern is multiplied out into its alternatives, the ways to choose a branch of every `$or`.
//! Evaluated on the documents' tapes; nothing is serialised. Where this engine and AWS's event-ruler
//! differ, it is in these points:
//!
//! - Numbers are compared exactly, as decimals, where event-ruler compares doubles and gives up on numbers
//!   that no double holds.
//! - A dot in a name is part of the name. event-ruler joins names with dots and confuses the two.
//! - A network holds no address of the other family. event-ruler lets `10.0.0.0/24` match `a00::`.
//! - An empty name is a name like any other.
//! - Ignoring case works beyond the basic plane of Unicode.
//! - A field asked for twice on one way through the `$or`s is refused, as EventBridge does; event-ruler
//!   lets the later one win.

pub(crate) mod address;
pub(crate) mod alternative;
mod explain;
mod fold;
mod parse;
pub(crate) mod root;
#[cfg(feature = "schema")]
mod schema;
pub(crate) mod shared;
pub(crate) mod test;

use antumbra_shadow::View;

use crate::change::Change;
use crate::limits::{PATTERN_ALTERNATIVES, PATTERN_CONDITIONS};
use crate::problem::{Place, Problems};
use alternative::{Alternative, Field};
use parse::{Condition, Conditions, Reader};

pub use explain::Miss;

/// A condition on the content of a change.
#[derive(Debug, Clone)]
pub struct Pattern {
    alternatives: Box<[Alternative]>,
}

impl Pattern {
    /// Reads a pattern. `None` when it has problems, which are noted.
    pub(crate) fn read(
        view: View<'_>,
        place: &Place<'_>,
        problems: &mut Problems<'_>,
    ) -> Option<Pattern> {
        let before = problems.found.len();
        let conditions = Reader { problems }.object(view, &[], false, place);
        if problems.found.len() > before {
            return None;
        }
        let ways = multiply(vec![Vec::new()], &conditions)
            .map_err(|reason| problems.add(place, reason))
            .ok()?;
        let alternatives = ways.into_iter().map(Alternative::new).collect();
        Some(Pattern { alternatives })
    }

    /// Whether the change is as the pattern says.
    pub fn matches(&self, change: &Change<'_>) -> bool {
        self.alternatives
            .iter()
            .any(|alternative| alternative.matches(change))
    }

    /// Whether it looks at the diff.
    pub fn needs_diff(&self) -> bool {
        self.alternatives.iter().any(Alternative::needs_diff)
    }

    pub(crate) fn alternatives(&self) -> &[Alternative] {
        &self.alternatives
    }
}

/// Extends each way so far by all that the conditions ask for.
fn multiply(mut ways: Vec<Vec<Field>>, conditions: &Conditions) -> Result<Vec<Vec<Field>>, String> {
    for condition in conditions {
        ways = match condition {
            Condition::Field { .. } => {
                let fields: Vec<Field> = condition.fields().collect();
                match fields.as_slice() {
                    // By far the most common, and it must not copy.
                    [field] => add(ways, field)?,
                    fields => {
                        let mut extended = Vec::new();
                        for field in fields {
                            extended.append(&mut add(ways.clone(), field)?);
                        }
                        extended
                    }
                }
            }
            Condition::Or(branches) => {
                let mut extended = Vec::new();
                for branch in branches {
                    extended.append(&mut multiply(ways.clone(), branch)?);
                    bounded(&extended)?;
                }
                extended
            }
        };
        bounded(&ways)?;
    }
    Ok(ways)
}

fn add(mut ways: Vec<Vec<Field>>, field: &Field) -> Result<Vec<Vec<Field>>, String> {
    for way in &mut ways {
        if way.iter().any(|known| known.path == field.path) {
            return Err(format!("asks twice for /{}", field.path.join("/")));
        }
        way.push(field.clone());
    }
    Ok(ways)
}

fn bounded(ways: &[Vec<Field>]) -> Result<(), String> {
    let conditions: usize = ways.iter().map(Vec::len).sum();
    if ways.len() > PATTERN_ALTERNATIVES {
        return Err(format!(
            "has {} alternatives or more, once its $or are multiplied out; the limit is {PATTERN_ALTERNATIVES}",
            ways.len()
        ));
    }
    if conditions > PATTERN_CONDITIONS {
        return Err(format!(
            "has {conditions} conditions or more, once its $or are multiplied out; the limit is {PATTERN_CONDITIONS}"
        ));
    }
    Ok(())
}
