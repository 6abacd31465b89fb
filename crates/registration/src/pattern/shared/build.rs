//! Builds the shared structure from the alternatives of many patterns.

use std::collections::HashMap;
use std::sync::Arc;

use super::test_index::Tests;
use super::{Entry, FEW, Members, Shared, Step};
use crate::pattern::alternative::{Alternative, Field, Wanted};
use crate::pattern::test::Test;

/// From this breadth a condition is marked only if an alternative is stored under it. Marking conditions that almost
/// always hold would cost more than evaluating the few alternatives that get this far.
const BROAD: u64 = 1_000;

/// The next steps, by name.
type Names = HashMap<Box<str>, u32>;

pub(super) struct Builder {
    names: Vec<Names>,
    conditions: Vec<Condition>,
    known: HashMap<(u32, Arc<str>), u32>,
    entries: Vec<Entry>,
    needs: Vec<u32>,
}

struct Condition {
    step: u32,
    tests: Arc<[Test]>,
    uses: u64,
    breadth: u64,
}

impl Condition {
    /// The approximate cost of storing an alternative under it.
    fn cost(&self) -> u64 {
        self.uses * self.breadth
    }
}

impl Builder {
    pub(super) fn new() -> Builder {
        Builder {
            names: vec![HashMap::new()],
            conditions: Vec::new(),
            known: HashMap::new(),
            entries: Vec::new(),
            needs: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, pattern: u32, number: u32, alternative: &Alternative) {
        let mut asks_more = false;
        alternative.each_field(&mut |field| match &field.wanted {
            Wanted::Any { tests, text } => {
                let condition = self.condition(&field, tests, text);
                self.needs.push(condition);
            }
            Wanted::Absent => asks_more = true,
        });
        let needs_end = self.needs.len() as u32;
        self.entries.push(Entry {
            pattern,
            alternative: number,
            needs_end,
            asks_more,
        });
    }

    fn condition(&mut self, field: &Field, tests: &Arc<[Test]>, text: &Arc<str>) -> u32 {
        let step = self.step(&field.path);
        // Tests with the same text are equal.
        let next = self.conditions.len() as u32;
        let number = *self.known.entry((step, text.clone())).or_insert(next);
        if number == next {
            let breadth = tests.iter().map(breadth).max().unwrap_or_default();
            self.conditions.push(Condition {
                step,
                tests: tests.clone(),
                uses: 0,
                breadth,
            });
        }
        self.conditions[number as usize].uses += 1;
        number
    }

    fn step(&mut self, path: &[Box<str>]) -> u32 {
        let mut at = 0;
        for name in path {
            at = match self.names[at as usize].get(name) {
                Some(known) => *known,
                None => {
                    let new = self.names.len() as u32;
                    self.names.push(HashMap::new());
                    self.names[at as usize].insert(name.clone(), new);
                    new
                }
            };
        }
        at
    }

    pub(super) fn finish(mut self, needs_diff: bool) -> Shared {
        let (triggered, valueless) = self.triggers();
        let mut trigger_ends = vec![0u32; self.conditions.len()];
        triggered
            .iter()
            .for_each(|(condition, _)| trigger_ends[*condition as usize] += 1);
        let marked: Vec<bool> = self
            .conditions
            .iter()
            .zip(&trigger_ends)
            .map(|(condition, triggers)| *triggers > 0 || condition.breadth < BROAD)
            .collect();
        let mut sum = 0;
        for end in &mut trigger_ends {
            sum += *end;
            *end = sum;
        }
        let needs = self.marked_needs(&marked);
        Shared {
            steps: self.steps(&marked),
            trigger_ends: trigger_ends.into(),
            triggers: triggered.into_iter().map(|(_, number)| number).collect(),
            alternatives: self.entries.into(),
            needs,
            valueless: valueless.into(),
            needs_diff,
        }
    }

    /// Alternatives by the condition they are stored under, and those without one.
    fn triggers(&self) -> (Vec<(u32, u32)>, Vec<u32>) {
        let (mut triggered, mut valueless) = (Vec::with_capacity(self.entries.len()), Vec::new());
        let mut from = 0;
        for (number, entry) in (0u32..).zip(&self.entries) {
            let needs = &self.needs[from as usize..entry.needs_end as usize];
            from = entry.needs_end;
            match needs
                .iter()
                .min_by_key(|need| self.conditions[**need as usize].cost())
            {
                Some(rarest) => triggered.push((*rarest, number)),
                None => valueless.push(number),
            }
        }
        triggered.sort_unstable();
        (triggered, valueless)
    }

    /// The conditions of an alternative that are marked.
    fn marked_needs(&mut self, marked: &[bool]) -> Box<[u32]> {
        let mut kept = Vec::with_capacity(self.needs.len());
        let mut from = 0;
        for entry in &mut self.entries {
            let needs = &self.needs[from as usize..entry.needs_end as usize];
            from = entry.needs_end;
            kept.extend(needs.iter().filter(|need| marked[**need as usize]));
            entry.asks_more |= needs.iter().any(|need| !marked[*need as usize]);
            entry.needs_end = kept.len() as u32;
        }
        kept.into()
    }

    fn steps(&mut self, marked: &[bool]) -> Box<[Step]> {
        let mut tests: Vec<Vec<(&Test, u32)>> = vec![Vec::new(); self.names.len()];
        for (number, condition) in (0u32..).zip(&self.conditions) {
            if marked[number as usize] {
                tests[condition.step as usize]
                    .extend(condition.tests.iter().map(|test| (test, number)));
            }
        }
        let names = std::mem::take(&mut self.names);
        let step = |(names, tests): (Names, Vec<(&Test, u32)>)| Step {
            members: if names.len() > FEW {
                Members::Many(names)
            } else {
                Members::Few(names.into_iter().collect())
            },
            tests: (!tests.is_empty()).then(|| Box::new(Tests::new(tests.into_iter()))),
        };
        names.into_iter().zip(tests).map(step).collect()
    }
}

/// The approximate share of values that pass a test.
fn breadth(test: &Test) -> u64 {
    match test {
        Test::Text(_) | Test::Number(_) | Test::Address(..) | Test::Equal(_) => 1,
        Test::Prefix(_)
        | Test::Suffix(_)
        | Test::PrefixFold(_)
        | Test::SuffixFold(_)
        | Test::Wildcard(_)
        | Test::Network(_) => 4,
        Test::Null | Test::Bool(_) => 300,
        Test::Range(_) => 500,
        Test::But(_) | Test::Exists => BROAD,
    }
}
