//! The plain implementation that the other one is compared with: both sides as deterministic automata of bytes.

use std::collections::HashSet;

use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson;
use regex_automata::util::start;

use super::KeyPart;
use crate::key::hir;

/// Maximum memory of the states of an automaton, and number of pairs of states; beyond, there is no answer.
const CACHE_BYTES: usize = 2 << 20;
const PAIRS: usize = 50_000;

/// The set of keys that some parts make, as a deterministic automaton of their bytes.
pub(super) struct Oracle(DFA);

impl Oracle {
    pub(super) fn new(parts: &[KeyPart<'_>]) -> Oracle {
        let parts = parts.iter().map(|part| match part {
            KeyPart::Text(text) => *text,
            KeyPart::Any => ".+",
            KeyPart::Id => "[^#]+",
            KeyPart::Sequence => "[@0-9][^#]*",
        });
        let expression = format!("(?s)^{}$", parts.collect::<String>());
        Oracle(automaton(&expression).unwrap())
    }

    /// Returns `None` if it is too much work to find out.
    pub(super) fn overlaps(&self, expression: &str) -> Option<bool> {
        let other = automaton(expression).ok()?;
        Walk::new(&self.0).search(Walk::new(&other)).ok()
    }
}

fn automaton(expression: &str) -> Result<DFA, String> {
    let nfa = thompson::Compiler::new()
        .configure(thompson::Config::new().which_captures(thompson::WhichCaptures::None))
        .build_from_hir(&hir(expression)?)
        .map_err(|error| error.to_string())?;
    let config = DFA::config()
        // A word boundary beside a character that is not ASCII ends the search without an answer.
        .unicode_word_boundary(true)
        .cache_capacity(CACHE_BYTES)
        .skip_cache_capacity_check(true)
        .minimum_cache_clear_count(Some(0));
    let builder = DFA::builder().configure(config).build_from_nfa(nfa);
    builder.map_err(|error| error.to_string())
}

/// One automaton, read byte by byte.
struct Walk<'d> {
    dfa: &'d DFA,
    cache: Cache,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Position {
    At(LazyStateID),
    /// Every continuation matches.
    Matched,
}

/// The automaton cannot tell, or only with too much memory.
struct Unknown;

impl<'d> Walk<'d> {
    fn new(dfa: &'d DFA) -> Walk<'d> {
        let cache = dfa.create_cache();
        Walk { dfa, cache }
    }

    fn start(&mut self) -> Result<Position, Unknown> {
        let start = self.dfa.start_state(&mut self.cache, &start::Config::new());
        start.map(Position::At).map_err(|_| Unknown)
    }

    /// The position after a byte, or after the end of the key; `None` if nothing can match any more.
    fn step(&mut self, from: Position, byte: Option<u8>) -> Result<Option<Position>, Unknown> {
        let Position::At(state) = from else {
            return Ok(Some(from));
        };
        let next = match byte {
            Some(byte) => self.dfa.next_state(&mut self.cache, state, byte),
            None => self.dfa.next_eoi_state(&mut self.cache, state),
        };
        match next.map_err(|_| Unknown)? {
            next if next.is_match() => Ok(Some(Position::Matched)),
            next if next.is_dead() => Ok(None),
            next if next.is_quit() => Err(Unknown),
            next => Ok(Some(Position::At(next))),
        }
    }

    /// Searches for a key that both match.
    fn search(mut self, mut other: Walk<'_>) -> Result<bool, Unknown> {
        let bytes = distinguished(self.dfa, other.dfa);
        let start = (self.start()?, other.start()?);
        let (mut seen, mut open) = (HashSet::from([start]), vec![start]);
        while let Some((one, another)) = open.pop() {
            let ends = (self.step(one, None)?, other.step(another, None)?);
            if matches!(ends, (Some(Position::Matched), Some(Position::Matched))) {
                return Ok(true);
            }
            for &byte in &bytes {
                let next = (
                    self.step(one, Some(byte))?,
                    other.step(another, Some(byte))?,
                );
                if let (Some(one), Some(another)) = next
                    && seen.insert((one, another))
                {
                    open.push((one, another));
                }
            }
            if seen.len() > PAIRS {
                return Err(Unknown);
            }
        }
        Ok(false)
    }
}

/// One byte of each group that neither automaton tells apart.
fn distinguished(one: &DFA, other: &DFA) -> Vec<u8> {
    let mut seen = HashSet::new();
    let classes = |byte: u8| (one.byte_classes().get(byte), other.byte_classes().get(byte));
    (0..=u8::MAX)
        .filter(|byte| seen.insert(classes(*byte)))
        .collect()
}
