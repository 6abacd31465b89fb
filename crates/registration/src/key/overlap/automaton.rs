//! Automata of characters.

use regex_syntax::hir::{Class, Hir, HirKind, Look};

/// Maximum number of states.
const STATES: usize = 1 << 16;

/// A state. The first one is where every key starts; numbers are positions in the list of states.
#[derive(Debug)]
pub(super) enum State {
    /// Goes on after one of these characters.
    One(Chars, u32),
    /// Goes on at both.
    Either(u32, u32),
    /// Goes on at the start of a key.
    Start(u32),
    /// Goes on at the end of a key.
    End(u32),
    /// Every continuation matches.
    Matched,
}

/// A set of characters, as ranges in ascending order.
#[derive(Debug)]
pub(super) enum Chars {
    Fixed(&'static [(char, char)]),
    Single([(char, char); 1]),
    Listed(Box<[(char, char)]>),
}

impl Chars {
    fn ranges(&self) -> &[(char, char)] {
        match self {
            Chars::Fixed(ranges) => ranges,
            Chars::Single(range) => range,
            Chars::Listed(ranges) => ranges,
        }
    }

    fn of_class(class: &Class) -> Chars {
        Chars::Listed(match class {
            Class::Unicode(class) => class
                .iter()
                .map(|range| (range.start(), range.end()))
                .collect(),
            // ASCII: an expression matches text only.
            Class::Bytes(class) => class
                .iter()
                .map(|range| (range.start().into(), range.end().into()))
                .collect(),
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ranges().is_empty()
    }

    pub(super) fn intersect(&self, other: &Chars) -> bool {
        let (mut these, mut those) = (self.ranges(), other.ranges());
        while let ([(start, end), rest @ ..], [(from, to), others @ ..]) = (these, those) {
            if end < from {
                these = rest;
            } else if to < start {
                those = others;
            } else {
                return true;
            }
        }
        false
    }
}

/// The states of an automaton.
#[derive(Debug)]
pub(super) struct Automaton(Box<[State]>);

impl Automaton {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn state(&self, number: u32) -> &State {
        &self.0[number as usize]
    }
}

/// An expression with too many states, or of bytes that are no text.
pub(super) struct Unknown;

/// Builds an automaton from the start of keys to their end: each part goes on at the first state of the next one.
#[derive(Default)]
pub(super) struct Builder {
    states: Vec<State>,
}

impl Builder {
    /// The number of the state that is added next.
    fn next(&self) -> u32 {
        self.states.len() as u32
    }

    pub(super) fn one(&mut self, chars: Chars) {
        let next = self.next() + 1;
        self.states.push(State::One(chars, next));
    }

    pub(super) fn one_or_more(&mut self, chars: Chars) {
        let first = self.next();
        self.one(chars);
        self.back_or_on(first);
    }

    pub(super) fn any_number(&mut self, chars: Chars) {
        let first = self.next();
        self.states.push(State::Either(first + 1, first + 3));
        self.one(chars);
        self.jump(first);
    }

    pub(super) fn text(&mut self, text: &str) {
        for c in text.chars() {
            self.one(Chars::Single([(c, c)]));
        }
    }

    /// Adds an expression, at any place of a key.
    pub(super) fn expression(&mut self, hir: &Hir) -> Result<(), Unknown> {
        if self.states.len() > STATES {
            return Err(Unknown);
        }
        match hir.kind() {
            HirKind::Empty => {}
            HirKind::Literal(literal) => match str::from_utf8(&literal.0) {
                Ok(text) => self.text(text),
                Err(_) => return Err(Unknown),
            },
            HirKind::Class(class) => self.one(Chars::of_class(class)),
            HirKind::Look(Look::Start) => self.states.push(State::Start(self.next() + 1)),
            HirKind::Look(Look::End) => self.states.push(State::End(self.next() + 1)),
            // Taken to hold.
            HirKind::Look(_) => {}
            HirKind::Repetition(repetition) => {
                let (min, max) = (repetition.min, repetition.max);
                self.repeat(&repetition.sub, min, max)?;
            }
            HirKind::Capture(capture) => self.expression(&capture.sub)?,
            HirKind::Concat(subs) => subs.iter().try_for_each(|sub| self.expression(sub))?,
            HirKind::Alternation(subs) => self.alternatives(subs)?,
        }
        Ok(())
    }

    fn repeat(&mut self, sub: &Hir, min: u32, max: Option<u32>) -> Result<(), Unknown> {
        let mut last = None;
        for _ in 0..min {
            last = Some(self.next());
            self.expression(sub)?;
        }
        match (max, last) {
            (None, Some(last)) => self.back_or_on(last),
            (None, None) => {
                let first = self.branch();
                self.expression(sub)?;
                self.jump(first);
                self.skip_to_here(first);
            }
            (Some(max), _) => {
                let mut branches = Vec::new();
                for _ in min..max {
                    branches.push(self.branch());
                    self.expression(sub)?;
                }
                branches
                    .into_iter()
                    .for_each(|branch| self.skip_to_here(branch));
            }
        }
        Ok(())
    }

    fn alternatives(&mut self, subs: &[Hir]) -> Result<(), Unknown> {
        let mut ends = Vec::new();
        for (number, sub) in subs.iter().enumerate() {
            if number + 1 == subs.len() {
                self.expression(sub)?;
                continue;
            }
            let branch = self.branch();
            self.expression(sub)?;
            ends.push(self.branch());
            self.skip_to_here(branch);
        }
        let end = self.next();
        for at in ends {
            self.states[at as usize] = State::Either(end, end);
        }
        Ok(())
    }

    /// Adds a state that goes on at the next one, and later also where [`Builder::skip_to_here`] says.
    fn branch(&mut self) -> u32 {
        let at = self.next();
        self.states.push(State::Either(at + 1, at + 1));
        at
    }

    fn skip_to_here(&mut self, branch: u32) {
        self.states[branch as usize] = State::Either(branch + 1, self.next());
    }

    fn jump(&mut self, to: u32) {
        self.states.push(State::Either(to, to));
    }

    fn back_or_on(&mut self, back: u32) {
        let next = self.next() + 1;
        self.states.push(State::Either(back, next));
    }

    /// Ends the automaton: a key that came this far matches.
    pub(super) fn matched(mut self) -> Automaton {
        self.states.push(State::Matched);
        Automaton(self.states.into())
    }

    /// Ends the automaton: a key that came this far and ends here matches.
    pub(super) fn matched_at_the_end(mut self) -> Automaton {
        self.states.push(State::End(self.next() + 1));
        self.matched()
    }
}
