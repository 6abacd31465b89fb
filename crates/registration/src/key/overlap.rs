//! Tells whether an expression can match any key of a set of keys.
//!
//! Every start of the stream listener asks this for each registration and item kind. So both sides are small automata of
//! characters, which are followed side by side; nothing is compiled to bytes or made deterministic.

mod automaton;
#[cfg(test)]
mod oracle;

use automaton::{Automaton, Builder, Chars, State};
use regex_syntax::hir::Look;

use super::hir;

/// Maximum number of pairs of states; beyond, the answer is "can match".
const PAIRS: usize = 1 << 20;

/// A set of keys `PK#SK`, such as the keys of an item kind.
#[derive(Debug)]
pub struct KeySet {
    keys: Automaton,
    /// The keys are those of shadows.
    pub(crate) shadows: bool,
}

/// A part of the keys of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyPart<'a> {
    /// This text.
    Text(&'a str),
    /// One or more characters.
    Any,
    /// One or more characters other than `#`.
    Id,
    /// A digit or `@`, then any number of characters other than `#`.
    Sequence,
}

const ANY: &[(char, char)] = &[('\0', char::MAX)];
const ID: &[(char, char)] = &[('\0', '"'), ('$', char::MAX)];
const SEQUENCE: &[(char, char)] = &[('0', '9'), ('@', '@')];

impl KeySet {
    /// The keys that consist of these parts; `shadows` says whether the items with these keys belong to shadows.
    pub fn new<'a>(parts: impl IntoIterator<Item = KeyPart<'a>>, shadows: bool) -> KeySet {
        let mut keys = Builder::default();
        for part in parts {
            match part {
                KeyPart::Text(text) => keys.text(text),
                KeyPart::Any => keys.one_or_more(Chars::Fixed(ANY)),
                KeyPart::Id => keys.one_or_more(Chars::Fixed(ID)),
                KeyPart::Sequence => {
                    keys.one(Chars::Fixed(SEQUENCE));
                    keys.any_number(Chars::Fixed(ID));
                }
            }
        }
        KeySet {
            keys: keys.matched_at_the_end(),
            shadows,
        }
    }

    /// Returns `false` if no key of the set can match the expression, and `true` otherwise or if that is too much work
    /// to find out.
    pub fn overlaps(&self, expression: &KeyExpression) -> bool {
        let Some(expression) = &expression.0 else {
            return true;
        };
        meets(&self.keys, expression).unwrap_or(true)
    }
}

/// The expression of a registration, ready to be compared with sets of keys. Assertions other than `^` and `$`, such as
/// word boundaries, are taken to hold.
#[derive(Debug)]
pub struct KeyExpression(Option<Automaton>);

impl KeyExpression {
    /// Parses an expression. One that is invalid or too large overlaps with every set.
    pub fn new(text: &str) -> KeyExpression {
        let Ok(hir) = hir(text) else {
            return KeyExpression(None);
        };
        let mut automaton = Builder::default();
        // An expression that starts with `^` has no characters before it; most do.
        if !hir.properties().look_set_prefix().contains(Look::Start) {
            automaton.any_number(Chars::Fixed(ANY));
        }
        let added = automaton.expression(&hir).is_ok();
        KeyExpression(added.then(|| automaton.matched()))
    }
}

/// A place in a key. An empty key has one that is both its start and its end.
#[derive(Clone, Copy)]
struct Place {
    start: bool,
    end: bool,
}

const START: Place = Place {
    start: true,
    end: false,
};
const INSIDE: Place = Place {
    start: false,
    end: false,
};

/// Searches for a key of the set that the expression matches; `None` if that takes too much memory.
fn meets(keys: &Automaton, expression: &Automaton) -> Option<bool> {
    let pairs = keys.len() * expression.len();
    if pairs > PAIRS {
        return None;
    }
    let mut seen = vec![0u8; pairs];
    let mut open = Vec::new();
    let mut visit = |open: &mut Vec<_>, a: u32, b: u32, place: Place| {
        let pair = &mut seen[a as usize * expression.len() + b as usize];
        let bit = 1 << (u8::from(place.start) + 2 * u8::from(place.end));
        if *pair & bit == 0 {
            *pair |= bit;
            open.push((a, b, place));
        }
    };
    visit(&mut open, 0, 0, START);
    while let Some((a, b, place)) = open.pop() {
        if !place.end {
            // The key may end here.
            visit(&mut open, a, b, Place { end: true, ..place });
        }
        match (keys.state(a), expression.state(b)) {
            (State::Either(first, second), _) => {
                visit(&mut open, *first, b, place);
                visit(&mut open, *second, b, place);
            }
            (_, State::Either(first, second)) => {
                visit(&mut open, a, *first, place);
                visit(&mut open, a, *second, place);
            }
            (State::Start(next), _) if place.start => visit(&mut open, *next, b, place),
            (_, State::Start(next)) if place.start => visit(&mut open, a, *next, place),
            (State::End(next), _) if place.end => visit(&mut open, *next, b, place),
            (_, State::End(next)) if place.end => visit(&mut open, a, *next, place),
            (State::Matched, State::Matched) => return Some(true),
            (State::One(these, next), State::One(those, after))
                if !place.end && these.intersect(those) =>
            {
                visit(&mut open, *next, *after, INSIDE);
            }
            // The expression matches whatever follows.
            (State::One(these, next), State::Matched) if !place.end && !these.is_empty() => {
                visit(&mut open, *next, b, INSIDE);
            }
            _ => {}
        }
    }
    Some(false)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::oracle::Oracle;
    use super::*;

    const READING: [KeyPart<'_>; 5] = [
        KeyPart::Text("SENSOR#"),
        KeyPart::Id,
        KeyPart::Text("#READ#"),
        KeyPart::Id,
        KeyPart::Text("#"),
    ];

    fn overlap(keys: &KeySet, expression: &str) -> bool {
        keys.overlaps(&KeyExpression::new(expression))
    }

    #[test]
    fn expressions_overlap_with_the_keys_that_they_can_match() {
        let readings = KeySet::new(READING.into_iter().chain([KeyPart::Sequence]), false);
        for (expression, expected) in [
            ("", true),
            ("door", true),
            ("door$", true),
            ("^SENSOR#", true),
            ("^SENSOR#door-1#READ#2026", true),
            ("(?i)^sensor#.*#read#", true),
            (r"\bdoor\b", true),
            (r"^SENSOR#\bdoor\b#STATE$", false),
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
            ("[a&&b]", false),
        ] {
            assert_eq!(overlap(&readings, expression), expected, "{expression}");
        }
    }

    #[test]
    fn too_much_work_counts_as_an_overlap() {
        let keys = KeySet::new([KeyPart::Text("SENSOR#")], false);
        assert!(!overlap(&keys, "^(?:SENSOR#)?[ab]*a[ab]{20}#never"));
        // Too many states, and too many pairs of them.
        assert!(overlap(&keys, "^(?:[ab]{200}){1000}#never"));
        let keys = KeySet::new([KeyPart::Text("SENSOR#of a long name and no id")], false);
        assert!(overlap(&keys, "^(?:[ab]{200}){200}#never"));
    }

    fn part() -> impl Strategy<Value = KeyPart<'static>> {
        prop_oneof![
            Just(KeyPart::Text("a#")),
            Just(KeyPart::Text("b")),
            Just(KeyPart::Text("é#ab")),
            Just(KeyPart::Text("#0")),
            Just(KeyPart::Any),
            Just(KeyPart::Id),
            Just(KeyPart::Sequence),
        ]
    }

    fn expression() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            4 => "[ab#é0]{1,4}",
            1 => Just("[ab]".to_owned()),
            1 => Just("[^#]".to_owned()),
            1 => Just(".".to_owned()),
            1 => Just("(?s:.)".to_owned()),
            1 => Just("[@0-9]".to_owned()),
            1 => Just(r"\w".to_owned()),
            1 => Just("(?i:A#)".to_owned()),
            1 => Just("[a&&b]".to_owned()),
            1 => Just("^".to_owned()),
            1 => Just("$".to_owned()),
            1 => Just(String::new()),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                4 => proptest::collection::vec(inner.clone(), 1..4).prop_map(|all| all.concat()),
                1 => proptest::collection::vec(inner.clone(), 2..4)
                    .prop_map(|all| format!("(?:{})", all.join("|"))),
                1 => (inner, prop_oneof![
                    Just("*"), Just("+"), Just("?"), Just("{2}"), Just("{1,3}"), Just("{0,2}"), Just("{2,}"), Just("*?"),
                ]).prop_map(|(one, times)| format!("(?:{one}){times}")),
            ]
        })
    }

    fn anchored() -> impl Strategy<Value = String> {
        (any::<bool>(), expression(), any::<bool>()).prop_map(|(start, middle, end)| {
            let (start, end) = (if start { "^" } else { "" }, if end { "$" } else { "" });
            format!("{start}(?:{middle}){end}")
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn finds_what_deterministic_automata_of_bytes_find(
            parts in proptest::collection::vec(part(), 0..6),
            expressions in proptest::collection::vec(anchored(), 1..8),
        ) {
            let (keys, oracle) = (KeySet::new(parts.clone(), false), Oracle::new(&parts));
            for expression in &expressions {
                if let Some(expected) = oracle.overlaps(expression) {
                    prop_assert_eq!(overlap(&keys, expression), expected, "{:?} {}", parts, expression);
                }
            }
        }
    }
}
