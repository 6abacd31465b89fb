//! Tells whether an expression can match any key of a set of keys.

use std::collections::HashSet;

use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson;
use regex_automata::util::start;

use super::hir;

/// Maximum memory of the states of an automaton, and number of pairs of states; beyond, the answer is "can match".
const CACHE_BYTES: usize = 2 << 20;
const PAIRS: usize = 50_000;

/// A set of keys `PK#SK`, given by a regular expression, such as the keys of an item kind.
#[derive(Debug)]
pub struct KeySet {
    /// Start of every key.
    prefix: String,
    keys: DFA,
    /// The keys are those of shadows.
    pub(crate) shadows: bool,
}

impl KeySet {
    /// Parses an expression; `shadows` says whether the items with these keys belong to shadows.
    pub fn new(expression: &str, shadows: bool) -> Result<KeySet, String> {
        Ok(KeySet {
            prefix: fixed_prefix(expression).to_owned(),
            keys: automaton(expression)?,
            shadows,
        })
    }

    /// Returns `false` if no key of the set can match the expression of a registration, and `true` otherwise or if
    /// that is too much work to find out.
    pub fn overlaps(&self, expression: &str) -> bool {
        let (own, other) = (self.prefix.as_str(), fixed_prefix(expression));
        if !own.starts_with(other) && !other.starts_with(own) {
            return false;
        }
        let Ok(other) = automaton(expression) else {
            return true;
        };
        Walk::new(&self.keys).meets(Walk::new(&other))
    }
}

/// The literal at the start of an expression that every match starts with, as far as it is found without parsing.
fn fixed_prefix(expression: &str) -> &str {
    let anchored = expression.strip_prefix('^').unwrap_or_default();
    if expression.contains('|') {
        return "";
    }
    let special = |c: char| !c.is_ascii_alphanumeric() && !matches!(c, '#' | ' ' | '-' | '_' | ':');
    let (literal, rest) = anchored.split_at(anchored.find(special).unwrap_or(anchored.len()));
    match rest.chars().next() {
        // The last character may be optional.
        Some('?' | '*' | '{') => &literal[..literal.len().saturating_sub(1)],
        _ => literal,
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
    fn meets(self, other: Walk<'_>) -> bool {
        self.search(other).unwrap_or(true)
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_overlap_with_the_keys_that_they_can_match() {
        let readings = KeySet::new("^SENSOR#[^#]+#READ#[^#]+#[@0-9][^#]*$", false).unwrap();
        for (expression, expected) in [
            ("", true),
            ("door", true),
            ("door$", true),
            ("^SENSOR#", true),
            ("^SENSOR#door-1#READ#2026", true),
            ("(?i)^sensor#.*#read#", true),
            (r"\bdoor\b", true),
            ("#READ#", true),
            ("^(DS|SENSOR)#", true),
            ("#STATE", true),
            ("#STATE$", false),
            ("^SENSOR#[^#]+#STATE$", false),
            ("^SENSOR#.*#STATE$", false),
            ("^DS#", false),
            ("^DS#.*#READ#", false),
            ("^[^#]+#[^#]+$", false),
            ("READ$", true),
            ("^$", false),
        ] {
            assert_eq!(readings.overlaps(expression), expected, "{expression}");
        }
    }

    #[test]
    fn an_expression_starts_with_a_literal_only_if_every_match_does() {
        for (expression, literal) in [
            ("^DS#My House#.*", "DS#My House#"),
            ("^DS", "DS"),
            ("^DS?", "D"),
            ("^DS{0,1}", "D"),
            ("^DS+", "DS"),
            ("^?DS", ""),
            ("^DS#|SENSOR#", ""),
            ("^(?i)ds", ""),
            ("DS", ""),
            ("^é", ""),
        ] {
            assert_eq!(fixed_prefix(expression), literal, "{expression}");
        }
    }

    /// A key with 2^20 states to tell apart.
    #[test]
    fn too_much_work_counts_as_an_overlap() {
        let keys = KeySet::new("^SENSOR#", false).unwrap();
        assert!(keys.overlaps("^(?:SENSOR#)?[ab]*a[ab]{20}#never"));
    }
}
