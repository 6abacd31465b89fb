//! Leaf conditions: on single changed values, selected by a path with wildcards.
//!
//! A condition holds if at least one leaf of the diff has a matching path, a listed kind of change, and matching old
//! and new values.

pub(crate) mod paths;

use antumbra_shadow::{Diff, Leaf as DiffLeaf, Part, Pointer, View, word_enum};

use crate::change::Change;
use crate::pattern::{Pattern, shortened};
use crate::problem::Place;
use crate::read::{Fields, Reader};
use crate::registration::Changes;
use paths::{Path, PathScratch, PathSet};

/// Maximum leaves in an explanation.
const SHOWN: usize = 5;

/// A condition on single changed values.
#[derive(Debug, Clone)]
pub struct Leaf {
    pub(crate) path: Path,
    /// The path as an automaton.
    paths: PathSet,
    changes: LeafChanges,
    old: Option<ValuePattern>,
    new: Option<ValuePattern>,
}

#[derive(Debug, Clone)]
struct ValuePattern {
    pattern: Pattern,
    /// The pattern in the file, for explanations.
    text: Box<str>,
}

word_enum! {
    /// The kind of a leaf's change, by its word in registrations and notifications.
    pub enum LeafChange as "kind of change" {
        /// The leaf is new.
        Added = "added",
        /// The leaf has another value, or another time.
        Updated = "updated",
        /// The leaf is gone, and was not acknowledged.
        Removed = "removed",
        /// The leaf is no longer desired because it is reported.
        Acknowledged = "acknowledged",
    }
}

impl LeafChange {
    fn of(leaf: &DiffLeaf<'_, '_>, change: &Change<'_>) -> LeafChange {
        match (leaf.part, leaf.old, change.acknowledged) {
            (Part::Added, ..) => LeafChange::Added,
            (Part::Updated, ..) => LeafChange::Updated,
            (_, Some(old), Some(acknowledged)) if acknowledged.contains(old) => {
                LeafChange::Acknowledged
            }
            _ => LeafChange::Removed,
        }
    }
}

/// A set of kinds of change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LeafChanges(u8);

impl LeafChanges {
    fn new(changes: impl IntoIterator<Item = LeafChange>) -> LeafChanges {
        let changes = changes.into_iter();
        LeafChanges(changes.fold(0, |set, change| set | 1 << change as u8))
    }

    fn contains(self, change: LeafChange) -> bool {
        self.0 & 1 << change as u8 != 0
    }
}

/// A leaf that a condition matched.
#[derive(Clone, Copy)]
pub struct MatchedLeaf<'d, 'a> {
    pub pointer: Pointer<'d, 'a>,
    pub change: LeafChange,
    pub old: Option<View<'a>>,
    pub new: Option<View<'a>>,
}

impl Leaf {
    pub(crate) fn read(
        view: View<'_>,
        place: &Place<'_>,
        reader: &mut Reader<'_, '_>,
    ) -> Option<Leaf> {
        let known = &["path", "change", "old", "new"];
        let mut fields = Fields::open(view, place, reader, known)?;
        fields.require("path");
        let path = fields.plain("path").and_then(|text| {
            Path::parse(&text)
                .map_err(|reason| fields.problem_at("path", reason))
                .ok()
        });
        let changes = fields.choices("change", LeafChange::WORDS);
        let all = || LeafChange::ALL.to_vec();
        let changes = LeafChanges::new(changes.unwrap_or_else(all));
        let old = fields.below("old", ValuePattern::read);
        let new = fields.below("new", ValuePattern::read);
        let path = path?;
        Some(Leaf {
            paths: PathSet::new([&path]),
            path,
            changes,
            old,
            new,
        })
    }

    /// Checks everything about a leaf except its path.
    pub(crate) fn holds(
        &self,
        leaf: &DiffLeaf<'_, '_>,
        change: &Change<'_>,
        changes: Changes,
    ) -> bool {
        self.unmet(leaf, change, changes).is_none()
    }

    /// Returns `true` if a leaf of the diff matches.
    pub(crate) fn matches(
        &self,
        change: &Change<'_>,
        changes: Changes,
        scratch: &mut PathScratch,
    ) -> bool {
        let mut found = false;
        self.paths
            .each_match(change.diff.diff(), scratch, &mut |_, leaf| {
                found = found || self.holds(&leaf, change, changes);
            });
        found
    }

    /// Calls `visit` with each leaf of the diff that matches.
    pub(crate) fn each_match<'d, 'a>(
        &self,
        diff: &'d Diff<'a>,
        change: &Change<'_>,
        changes: Changes,
        visit: &mut dyn FnMut(MatchedLeaf<'d, 'a>),
    ) {
        let scratch = &mut PathScratch::default();
        self.paths.each_match(diff, scratch, &mut |_, leaf| {
            if self.holds(&leaf, change, changes) {
                visit(MatchedLeaf {
                    pointer: leaf.pointer,
                    change: LeafChange::of(&leaf, change),
                    old: leaf.old,
                    new: leaf.new,
                });
            }
        });
    }

    /// The members of a condition, in the order of evaluation.
    pub(crate) const MEMBERS: [&'static str; 4] = ["path", "change", "old", "new"];

    /// The first member that does not hold for the leaf that meets most of them, and the reason; `None` if a leaf matches.
    pub(crate) fn miss(
        &self,
        change: &Change<'_>,
        changes: Changes,
    ) -> Option<(&'static str, String)> {
        let diff = change.diff.diff();
        let mut furthest: Option<(Unmet, (&'static str, String))> = None;
        let mut matched = false;
        self.paths
            .each_match(diff, &mut PathScratch::default(), &mut |_, leaf| match self
                .unmet(&leaf, change, changes)
            {
                None => matched = true,
                Some(unmet) if furthest.as_ref().is_none_or(|(best, _)| unmet > *best) => {
                    furthest = Some((unmet, self.describe(unmet, &leaf, change)));
                }
                Some(_) => {}
            });
        match furthest {
            _ if matched => None,
            Some((_, reason)) => Some(reason),
            None => {
                let mut seen: Vec<String> = diff
                    .leaves()
                    .take(SHOWN + 1)
                    .map(|leaf| shortened(leaf.pointer.to_string()))
                    .collect();
                let seen = match seen.len() {
                    0 => "nothing changed".to_owned(),
                    len => {
                        if len > SHOWN {
                            seen[SHOWN] = "...".to_owned();
                        }
                        format!("the changed values are {}", seen.join(", "))
                    }
                };
                let path = self.path.text();
                Some(("path", format!("{path} matches no changed value; {seen}")))
            }
        }
    }

    fn unmet(
        &self,
        leaf: &DiffLeaf<'_, '_>,
        change: &Change<'_>,
        changes: Changes,
    ) -> Option<Unmet> {
        let holds = |pattern: &Option<ValuePattern>, value| {
            let pattern = pattern.as_ref();
            pattern.is_none_or(|one| one.pattern.matches_value(value))
        };
        if !self.changes.contains(LeafChange::of(leaf, change)) {
            Some(Unmet::Change)
        } else if changes == Changes::Value && leaf.only_time {
            Some(Unmet::Time)
        } else if !holds(&self.old, leaf.old) {
            Some(Unmet::Old)
        } else if !holds(&self.new, leaf.new) {
            Some(Unmet::New)
        } else {
            None
        }
    }

    fn describe(
        &self,
        unmet: Unmet,
        leaf: &DiffLeaf<'_, '_>,
        change: &Change<'_>,
    ) -> (&'static str, String) {
        let pointer = shortened(leaf.pointer.to_string());
        let value = |pattern: &Option<ValuePattern>, value: Option<View<'_>>| {
            let expected = pattern.as_ref().map_or("", |pattern| &pattern.text);
            let seen = match value {
                Some(value) => format!("is {}", shortened(value.to_json())),
                None => "there is no value".to_owned(),
            };
            format!("{pointer} must be {expected}, but {seen}")
        };
        match unmet {
            Unmet::Change => {
                let seen = LeafChange::of(leaf, change);
                let reason = format!("{pointer} was {seen}, which is not in the list");
                ("change", reason)
            }
            Unmet::Time => ("path", format!("only the timestamp of {pointer} changed")),
            Unmet::Old => ("old", value(&self.old, leaf.old)),
            Unmet::New => ("new", value(&self.new, leaf.new)),
        }
    }
}

/// The conditions on a leaf besides its path, in the order of evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
enum Unmet {
    Change,
    Time,
    Old,
    New,
}

impl ValuePattern {
    fn read(
        view: View<'_>,
        place: &Place<'_>,
        reader: &mut Reader<'_, '_>,
    ) -> Option<ValuePattern> {
        if !view.is_container() {
            let reason = "must be a list of values, or an object of fields";
            reader.problems.add(place, reason);
            return None;
        }
        Some(ValuePattern {
            pattern: Pattern::read_value(view, place, reader.problems)?,
            text: view.to_json().into(),
        })
    }
}
