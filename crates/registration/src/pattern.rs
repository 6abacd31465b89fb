//! Patterns: conditions on the content of a change, in EventBridge's language.
//!
//! A pattern is expanded into alternatives, one for each choice of a branch of every `$or`. It is evaluated on the
//! documents' tapes; nothing is serialized. Differences from AWS's event-ruler:
//!
//! - Numbers are compared exactly, as decimals. event-ruler compares doubles, and rejects numbers that no double
//!   represents.
//! - A dot in a name is part of the name. event-ruler joins names with dots and cannot distinguish the two.
//! - A network contains no address of the other family. In event-ruler `10.0.0.0/24` matches `a00::`.
//! - Empty names are allowed.
//! - Ignoring case works for characters beyond the basic plane of Unicode.
//! - A field that occurs twice in one alternative is rejected, as in EventBridge; in event-ruler the later one wins.

pub(crate) mod address;
pub(crate) mod alternative;
mod explain;
mod fold;
pub(crate) mod parse;
pub(crate) mod root;
pub(crate) mod shared;
pub(crate) mod test;

use std::str::FromStr;

use antumbra_shadow::{Document, Kind, View};

use crate::change::Change;
use crate::limits::{PATTERN_ALTERNATIVES, PATTERN_CONDITIONS};
use crate::problem::{LoadErrors, Place, Problems};
use alternative::{Alternative, Field};
pub(crate) use explain::{pointer, shortened};
use parse::{Condition, Conditions, Reader};

/// A condition on the content of a change.
#[derive(Debug, Clone)]
pub struct Pattern {
    alternatives: Box<[Alternative]>,
}

impl Pattern {
    /// Parses a pattern of changes, as in a registration.
    ///
    /// ```
    /// use antumbra_registration::Pattern;
    /// assert!(Pattern::of_change(r#"{"operation":["modify"],"new":{"led":["on"]}}"#).is_ok());
    /// assert!(Pattern::of_change(r#"{"led":["on"]}"#).is_err());
    /// ```
    pub fn of_change(json: &str) -> Result<Pattern, LoadErrors> {
        Pattern::parse(json, Pattern::read)
    }

    fn parse(
        json: &str,
        read: impl FnOnce(View<'_>, &Place<'_>, &mut Problems<'_>) -> Option<Pattern>,
    ) -> Result<Pattern, LoadErrors> {
        let mut found = Vec::new();
        let mut problems = Problems {
            file: "pattern",
            found: &mut found,
        };
        let pattern = match Document::parse(json) {
            Ok(document) => read(document.view(), &Place::ROOT, &mut problems),
            Err(error) => {
                problems.add(&Place::ROOT, error.to_string());
                None
            }
        };
        pattern.ok_or(LoadErrors { problems: found })
    }

    /// Reads a pattern; `None` if it has problems, which are reported.
    pub(crate) fn read(
        view: View<'_>,
        place: &Place<'_>,
        problems: &mut Problems<'_>,
    ) -> Option<Pattern> {
        Pattern::build(place, problems, |reader| {
            reader.object(view, &[], false, place)
        })
    }

    /// Reads a pattern of one value: a list of tests, or an object of fields in it.
    pub(crate) fn read_value(
        view: View<'_>,
        place: &Place<'_>,
        problems: &mut Problems<'_>,
    ) -> Option<Pattern> {
        // The name of the root only has to be one: the value is given to `matches_value`.
        let path = vec![Box::from("new")];
        Pattern::build(place, problems, |reader| match view.kind() {
            Kind::Array => vec![reader.field(view, path, place)],
            _ => reader.object(view, &path, false, place),
        })
    }

    fn build(
        place: &Place<'_>,
        problems: &mut Problems<'_>,
        read: impl FnOnce(&mut Reader<'_, '_>) -> Conditions,
    ) -> Option<Pattern> {
        let before = problems.found.len();
        let conditions = read(&mut Reader { problems });
        if problems.found.len() > before {
            return None;
        }
        let ways = multiply(vec![Vec::new()], &conditions)
            .map_err(|reason| problems.add(place, reason))
            .ok()?;
        let alternatives = ways.into_iter().map(Alternative::new).collect();
        Some(Pattern { alternatives })
    }

    /// Returns `true` if the change matches.
    pub fn matches(&self, change: &Change<'_>) -> bool {
        self.alternatives
            .iter()
            .any(|alternative| alternative.matches(change))
    }

    /// Returns `true` if a value matches; `None` is an absent one.
    pub(crate) fn matches_value(&self, value: Option<View<'_>>) -> bool {
        self.alternatives
            .iter()
            .any(|alternative| alternative.matches_value(value))
    }

    /// Returns `true` if a document matches a pattern that was parsed from a text.
    pub fn matches_document(&self, document: &Document) -> bool {
        self.matches_value(Some(document.view()))
    }

    /// Returns `true` if it has conditions on the diff.
    pub fn needs_diff(&self) -> bool {
        self.alternatives.iter().any(Alternative::needs_diff)
    }

    pub(crate) fn alternatives(&self) -> &[Alternative] {
        &self.alternatives
    }
}

/// Parses a pattern of one document, such as a filter policy of SNS.
impl FromStr for Pattern {
    type Err = LoadErrors;

    fn from_str(json: &str) -> Result<Pattern, LoadErrors> {
        Pattern::parse(json, Pattern::read_value)
    }
}

/// Extends each alternative by all conditions.
fn multiply(mut ways: Vec<Vec<Field>>, conditions: &Conditions) -> Result<Vec<Vec<Field>>, String> {
    for condition in conditions {
        ways = match condition {
            Condition::Field(fields) => match fields.as_slice() {
                // The most common case: extend in place, without copying.
                [field] => add(ways, field)?,
                fields => {
                    let mut extended = Vec::new();
                    for field in fields {
                        extended.append(&mut add(ways.clone(), field)?);
                    }
                    extended
                }
            },
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
            return Err(format!("has two conditions on /{}", field.path.join("/")));
        }
        way.push(field.clone());
    }
    Ok(ways)
}

fn bounded(ways: &[Vec<Field>]) -> Result<(), String> {
    let conditions: usize = ways.iter().map(Vec::len).sum();
    if ways.len() > PATTERN_ALTERNATIVES {
        return Err(format!(
            "has {} alternatives or more, after expanding its $or; the limit is {PATTERN_ALTERNATIVES}",
            ways.len()
        ));
    }
    if conditions > PATTERN_CONDITIONS {
        return Err(format!(
            "has {conditions} conditions or more, after expanding its $or; the limit is {PATTERN_CONDITIONS}"
        ));
    }
    Ok(())
}
