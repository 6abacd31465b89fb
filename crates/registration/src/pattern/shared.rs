//! The patterns of many registrations with one key, as one structure.
//!
//! The change is walked once, along the paths of all patterns; each value is looked up among the tests on its path, and
//! the conditions that hold are marked. Each alternative is stored under the condition that is least likely to hold, and
//! is only evaluated if that one holds.
//!
//! The result is exactly that of [`Pattern::matches`], which is called where arrays or absent values need more than
//! counting.

mod build;
mod intervals;
mod numbers;
mod test_index;

use std::collections::HashMap;

use antumbra_shadow::{Kind, Pointer, View};

use super::Pattern;
use super::root::Root;
use super::test::Scalar;
use crate::change::Change;
use build::Builder;
use test_index::Tests;

/// Maximum members of an object that are compared one by one instead of hashed.
const FEW: usize = 8;

#[derive(Debug)]
pub(crate) struct Shared {
    steps: Box<[Step]>,
    /// The end of each condition's alternatives; they start at the end of the previous ones.
    trigger_ends: Box<[u32]>,
    triggers: Box<[u32]>,
    alternatives: Box<[Entry]>,
    /// The conditions of each alternative, one after the other.
    needs: Box<[u32]>,
    /// Alternatives that require no value.
    valueless: Box<[u32]>,
    needs_diff: bool,
}

/// A step on the paths of all patterns.
#[derive(Debug, Default)]
struct Step {
    members: Members,
    tests: Option<Box<Tests>>,
}

#[derive(Debug)]
enum Members {
    Few(Box<[(Box<str>, u32)]>),
    Many(HashMap<Box<str>, u32>),
}

impl Default for Members {
    fn default() -> Members {
        Members::Few(Box::default())
    }
}

impl Members {
    fn get(&self, name: &str) -> Option<u32> {
        match self {
            Members::Few(list) => list
                .iter()
                .find(|(known, _)| **known == *name)
                .map(|(_, step)| *step),
            Members::Many(map) => map.get(name).copied(),
        }
    }

    fn is_empty(&self) -> bool {
        matches!(self, Members::Few(list) if list.is_empty())
    }
}

#[derive(Debug)]
struct Entry {
    /// The index of the pattern.
    pattern: u32,
    /// The index of the alternative in its pattern.
    alternative: u32,
    needs_end: u32,
    /// `true` if it has conditions beyond the marked ones.
    asks_more: bool,
}

/// The state of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Holds {
    #[default]
    Not,
    /// It holds by a value in an element of an array, which restricts the other conditions.
    InElement,
    Freely,
}

/// Reusable buffers for one evaluation.
#[derive(Debug, Default)]
pub(crate) struct SharedScratch {
    holds: Vec<Holds>,
    found: Vec<u32>,
    lower: String,
}

impl Shared {
    /// Builds the structure; patterns are identified by their index.
    pub(crate) fn new(patterns: &[&Pattern]) -> Shared {
        let mut builder = Builder::new();
        for (position, pattern) in (0u32..).zip(patterns) {
            for (number, alternative) in (0u32..).zip(pattern.alternatives()) {
                builder.add(position, number, alternative);
            }
        }
        builder.finish(patterns.iter().any(|pattern| pattern.needs_diff()))
    }

    /// Calls `found` with the index of every pattern that matches, at least once. `patterns` returns the pattern of an
    /// index.
    pub(crate) fn each_match<'p>(
        &self,
        pattern: impl Fn(u32) -> Option<&'p Pattern>,
        change: &Change<'_>,
        scratch: &mut SharedScratch,
        mut then: impl FnMut(u32),
    ) {
        scratch.holds.resize(self.trigger_ends.len(), Holds::Not);
        self.mark(change, scratch);
        let exact = |entry: &Entry| {
            pattern(entry.pattern)
                .and_then(|pattern| pattern.alternatives().get(entry.alternative as usize))
                .is_some_and(|alternative| alternative.matches(change))
        };
        for &condition in &scratch.found {
            let from = if condition > 0 {
                self.trigger_ends[condition as usize - 1]
            } else {
                0
            };
            for &number in
                &self.triggers[from as usize..self.trigger_ends[condition as usize] as usize]
            {
                let entry = &self.alternatives[number as usize];
                let needs = self.needs_of(number);
                if needs
                    .iter()
                    .any(|need| scratch.holds[*need as usize] == Holds::Not)
                {
                    continue;
                }
                let in_elements = needs
                    .iter()
                    .filter(|need| scratch.holds[**need as usize] == Holds::InElement)
                    .count();
                if (in_elements < 2 && !entry.asks_more) || exact(entry) {
                    then(entry.pattern);
                }
            }
        }
        for &number in &self.valueless {
            let entry = &self.alternatives[number as usize];
            if exact(entry) {
                then(entry.pattern);
            }
        }
        for condition in scratch.found.drain(..) {
            scratch.holds[condition as usize] = Holds::Not;
        }
    }

    fn needs_of(&self, alternative: u32) -> &[u32] {
        let at = alternative as usize;
        let from = if at > 0 {
            self.alternatives[at - 1].needs_end
        } else {
            0
        };
        &self.needs[from as usize..self.alternatives[at].needs_end as usize]
    }

    /// Marks every condition that a value satisfies.
    fn mark(&self, change: &Change<'_>, scratch: &mut SharedScratch) {
        let root = &self.steps[0];
        for (name, kind) in Root::ALL {
            let Some(step) = root.members.get(name) else {
                continue;
            };
            match kind {
                Root::Old => change
                    .old
                    .into_iter()
                    .for_each(|view| self.walk(step, view, Holds::Freely, scratch)),
                Root::New => change
                    .new
                    .into_iter()
                    .for_each(|view| self.walk(step, view, Holds::Freely, scratch)),
                Root::Diff => self.walk_diff(step, change, scratch),
                _ => kind.with_scalar(change, |scalar| {
                    if let Some(scalar) = scalar {
                        self.value(step, scalar, Holds::Freely, scratch);
                    }
                }),
            }
        }
    }

    fn walk(&self, at: u32, view: View<'_>, how: Holds, scratch: &mut SharedScratch) {
        let step = &self.steps[at as usize];
        match view.kind() {
            Kind::Object => {
                if step.members.is_empty() {
                    return;
                }
                for member in view.children() {
                    if let Some(next) = step.members.get(&member.key()) {
                        self.walk(next, member, how, scratch);
                    }
                }
            }
            Kind::Array => {
                for element in view.children() {
                    let how = if element.is_container() {
                        Holds::InElement
                    } else {
                        how
                    };
                    self.walk(at, element, how, scratch);
                }
            }
            _ => {
                if step.tests.is_some()
                    && let Some(scalar) = Scalar::of(view)
                {
                    self.value(at, &scalar, how, scratch);
                }
            }
        }
    }

    fn walk_diff(&self, at: u32, change: &Change<'_>, scratch: &mut SharedScratch) {
        if !self.needs_diff {
            return;
        }
        let diff = change.diff.diff();
        let part = |name: &str| {
            self.steps[at as usize]
                .members
                .get(name)
                .map(|step| (step, &self.steps[step as usize]))
        };
        let mut text = String::new();
        if let Some((_, step)) = part("added") {
            for (pointer, new) in diff.added() {
                step.members
                    .get(written(pointer, &mut text))
                    .into_iter()
                    .for_each(|next| self.walk(next, new, Holds::Freely, scratch));
            }
        }
        if let Some((_, step)) = part("removed") {
            for (pointer, old) in diff.removed() {
                step.members
                    .get(written(pointer, &mut text))
                    .into_iter()
                    .for_each(|next| self.walk(next, old, Holds::Freely, scratch));
            }
        }
        if let Some((_, step)) = part("updated") {
            for (pointer, old, new) in diff.updated() {
                let Some(next) = step.members.get(written(pointer, &mut text)) else {
                    continue;
                };
                let sides = &self.steps[next as usize].members;
                sides
                    .get("old")
                    .into_iter()
                    .for_each(|next| self.walk(next, old, Holds::Freely, scratch));
                sides
                    .get("new")
                    .into_iter()
                    .for_each(|next| self.walk(next, new, Holds::Freely, scratch));
            }
        }
    }

    fn value(&self, at: u32, scalar: &Scalar<'_>, how: Holds, scratch: &mut SharedScratch) {
        let Some(tests) = &self.steps[at as usize].tests else {
            return;
        };
        let SharedScratch {
            holds,
            found,
            lower,
        } = scratch;
        tests.each(scalar, lower, |condition| {
            let known = &mut holds[condition as usize];
            if *known == Holds::Not {
                found.push(condition);
                *known = how;
            } else if how == Holds::Freely {
                *known = how;
            }
        });
    }
}
/// Writes a pointer into a buffer that is used for all of them.
fn written<'t>(pointer: Pointer<'_, '_>, text: &'t mut String) -> &'t str {
    text.clear();
    pointer.write(text);
    text
}
