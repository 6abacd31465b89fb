//! The index from a key to the expressions that can match it.
//!
//! Each expression is stored under the rarest literal that its keys must contain: a prefix, found by [`Prefixes`], or
//! an inner literal, found by [`Inner`]. Expressions without such a literal, and those with too popular ones, share one
//! combined automaton. So the cost of a key hardly grows with the number of expressions that cannot match it.

use std::collections::HashMap;
use std::sync::OnceLock;

use regex_automata::meta::Regex;
use regex_automata::{Input, MatchKind, PatternSet};

use super::inner::Inner;
use super::prefixes::Prefixes;
use super::{Key, Literals, config, hir};

/// Maximum expressions under one literal that are tried one by one.
const CROWD: usize = 16;
/// Maximum other expressions that are tried one by one.
const FEW: usize = 4;
/// Maximum bytes of the combined automaton; beyond, its expressions are tried one by one.
const COMBINED_BYTES: usize = 16 * 1024 * 1024;

#[derive(Debug, Default)]
pub(crate) struct KeyIndex {
    prefixes: Prefixes,
    inner: Option<Inner>,
    rest: Box<[u32]>,
    combined: OnceLock<Option<Box<Regex>>>,
}

#[derive(Debug, Default)]
pub(crate) struct KeyScratch {
    candidates: Vec<u32>,
    rest: Option<PatternSet>,
}

impl KeyIndex {
    /// Builds the index; expressions are identified by their index in `keys`.
    pub(crate) fn new(keys: &[(Key, Literals)]) -> KeyIndex {
        let mut uses: HashMap<(bool, &[u8]), usize> = HashMap::with_capacity(keys.len());
        for (_, literals) in keys {
            for prefix in &literals.prefixes {
                *uses.entry((true, prefix)).or_default() += 1;
            }
            for inner in &literals.inner {
                *uses.entry((false, inner)).or_default() += 1;
            }
        }
        let crowd = |anchored: bool, set: &[Vec<u8>]| {
            set.iter()
                .filter_map(|literal| uses.get(&(anchored, literal.as_slice())))
                .copied()
                .max()
                .unwrap_or(usize::MAX)
        };
        let (mut prefixes, mut inner, mut rest) = (Vec::new(), Vec::new(), Vec::new());
        for (number, (key, literals)) in (0u32..).zip(keys) {
            let (at_start, anywhere) = (
                crowd(true, &literals.prefixes),
                crowd(false, &literals.inner),
            );
            let best = at_start.min(anywhere);
            if best == usize::MAX || (best > CROWD && !key.is_glob()) {
                rest.push(number);
            } else if at_start <= anywhere {
                prefixes.extend(
                    literals
                        .prefixes
                        .iter()
                        .map(|prefix| (prefix.as_slice(), number)),
                );
            } else {
                inner.extend(
                    literals
                        .inner
                        .iter()
                        .map(|literal| (literal.as_slice(), number)),
                );
            }
        }
        // Without an automaton for inner literals, their expressions belong to the rest.
        let inner = match Inner::new(inner) {
            Ok(inner) => inner,
            Err(numbers) => {
                rest.extend(numbers);
                rest.sort_unstable();
                rest.dedup();
                None
            }
        };
        KeyIndex {
            prefixes: Prefixes::new(prefixes),
            inner,
            rest: rest.into(),
            combined: OnceLock::new(),
        }
    }

    /// Calls `found` with the index of every matching expression, each once, in any order.
    pub(crate) fn each_match(
        &self,
        keys: &[Key],
        key: &str,
        scratch: &mut KeyScratch,
        mut then: impl FnMut(u32),
    ) {
        let candidates = &mut scratch.candidates;
        candidates.clear();
        self.prefixes
            .each(key.as_bytes(), |number| candidates.push(number));
        if let Some(inner) = &self.inner {
            inner.each(key, |number| candidates.push(number));
        }
        if candidates.len() > 1 {
            candidates.sort_unstable();
            candidates.dedup();
        }
        let tried = |number: &&u32| {
            keys.get(**number as usize)
                .is_some_and(|expression| expression.is_match(key))
        };
        candidates.iter().filter(tried).copied().for_each(&mut then);
        if self.rest.is_empty() {
            return;
        }
        match self.combined(keys) {
            Some(combined) => {
                let set = match &mut scratch.rest {
                    Some(set) if set.capacity() == combined.pattern_len() => set,
                    other => other.insert(PatternSet::new(combined.pattern_len())),
                };
                set.clear();
                combined.which_overlapping_matches(&Input::new(key), set);
                set.iter()
                    .for_each(|pattern| then(self.rest[pattern.as_usize()]));
            }
            None => self.rest.iter().filter(tried).copied().for_each(then),
        }
    }

    /// Compiled with the first key, to keep the start fast.
    fn combined(&self, keys: &[Key]) -> Option<&Regex> {
        let compile = || {
            if self.rest.len() <= FEW {
                return None;
            }
            let hirs: Result<Vec<_>, _> = self
                .rest
                .iter()
                .map(|number| hir(keys[*number as usize].text()))
                .collect();
            let config = config()
                .nfa_size_limit(Some(COMBINED_BYTES))
                .match_kind(MatchKind::All);
            Regex::builder()
                .configure(config)
                .build_many_from_hir(&hirs.ok()?)
                .ok()
                .map(Box::new)
        };
        self.combined.get_or_init(compile).as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn expression() -> impl Strategy<Value = String> {
        let part = prop_oneof![
            4 => "[ab#]{1,4}",
            2 => Just(".*".to_owned()),
            1 => Just("[ab]+".to_owned()),
            1 => Just("(a|bb)".to_owned()),
            1 => Just(".".to_owned()),
            1 => Just("[0-9]".to_owned()),
            1 => Just("(?i:a)".to_owned()),
        ];
        (
            proptest::bool::ANY,
            proptest::collection::vec(part, 0..5),
            proptest::bool::ANY,
        )
            .prop_map(|(start, parts, end)| {
                format!(
                    "{}{}{}",
                    if start { "^" } else { "" },
                    parts.concat(),
                    if end { "$" } else { "" }
                )
            })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn finds_what_a_loop_over_expressions_finds(
            expressions in proptest::collection::vec(expression(), 0..40),
            keys in proptest::collection::vec("[abA0#\n]{0,12}", 1..8),
        ) {
            let parsed: Vec<_> = expressions.iter().map(|text| Key::parse(text).unwrap()).collect();
            let index = KeyIndex::new(&parsed);
            let parsed: Vec<Key> = parsed.into_iter().map(|(key, _)| key).collect();
            let plain: Vec<Regex> = expressions.iter().map(|text| Regex::new(text).unwrap()).collect();
            let mut scratch = KeyScratch::default();
            for key in &keys {
                let mut found = Vec::new();
                index.each_match(&parsed, key, &mut scratch, |number| found.push(number));
                found.sort_unstable();
                let expected: Vec<u32> = (0u32..).zip(&plain)
                    .filter(|(_, regex)| regex.is_match(key.as_str()))
                    .map(|(number, _)| number).collect();
                prop_assert_eq!(found, expected, "{:?} {:?}", expressions, key);
            }
        }
    }
}
