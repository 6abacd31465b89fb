//! Regular expressions on keys, `PK#SK`.
//!
//! Literals joined by `.*` are matched as globs. Other expressions use a linear-time automaton, whose size is checked
//! when the registration is read and which is compiled when a key first needs it.

pub(crate) mod index;
mod inner;
mod literals;
mod overlap;
mod prefixes;

use std::sync::{Arc, OnceLock};

use regex_automata::meta::Regex;
use regex_automata::nfa::thompson;
use regex_syntax::hir::{Class, Hir, HirKind};

use crate::glob::Glob;
use crate::limits::{KEY_AUTOMATON_BYTES, KEY_BYTES, KEY_NESTING};
pub(crate) use inner::Inner;
pub(crate) use literals::Literals;
pub use overlap::{KeyExpression, KeyPart, KeySet};
pub(crate) use prefixes::Prefixes;

/// Complexity below which an expression always compiles within the limit, so that it need not be compiled to check.
const SURELY_SMALL: usize = 2_000;

/// A regular expression on keys.
#[derive(Debug)]
pub(crate) struct Key {
    text: Arc<str>,
    glob: Option<Glob>,
    regex: OnceLock<Option<Box<Regex>>>,
}

impl Key {
    /// Parses an expression, and finds the literals that every matching key contains.
    pub(crate) fn parse(text: &str) -> Result<(Key, Literals), String> {
        if text.len() > KEY_BYTES {
            return Err(format!(
                "has {} bytes, the limit is {KEY_BYTES}",
                text.len()
            ));
        }
        let key = |glob| Key {
            text: text.into(),
            glob,
            regex: OnceLock::new(),
        };
        if let Some(glob) = simple(text) {
            let literals = Literals::of_glob(&glob);
            return Ok((key(Some(glob)), literals));
        }
        let hir = hir(text)?;
        if parts(&hir) > SURELY_SMALL {
            compiles(&hir)?;
        }
        Ok((key(None), Literals::of_regex(&hir)))
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn shared_text(&self) -> Arc<str> {
        self.text.clone()
    }

    /// Returns `true` if it is matched without an automaton.
    pub(crate) fn is_glob(&self) -> bool {
        self.glob.is_some()
    }

    pub(crate) fn is_match(&self, key: &str) -> bool {
        match &self.glob {
            // A dot does not match a line feed; the glob does.
            Some(glob) if memchr::memchr(b'\n', key.as_bytes()).is_none() => glob.is_match(key),
            _ => self.regex().is_some_and(|regex| regex.is_match(key)),
        }
    }

    /// Its size was checked when it was read, so it compiles.
    fn regex(&self) -> Option<&Regex> {
        let compile = || {
            Regex::builder()
                .configure(config())
                .build_from_hir(&hir(&self.text).ok()?)
                .ok()
                .map(Box::new)
        };
        self.regex.get_or_init(compile).as_deref()
    }
}

/// Without captures, which are not used, and without a size limit, which was checked before.
pub(super) fn config() -> regex_automata::meta::Config {
    Regex::config()
        .nfa_size_limit(None)
        .which_captures(thompson::WhichCaptures::None)
}

pub(super) fn hir(text: &str) -> Result<Hir, String> {
    let mut parser = regex_syntax::ParserBuilder::new()
        .nest_limit(KEY_NESTING)
        .build();
    parser.parse(text).map_err(|fault| match fault {
        regex_syntax::Error::Parse(fault) => format!(
            "is not a regular expression: {} at character {}",
            fault.kind(),
            fault.span().start.column
        ),
        regex_syntax::Error::Translate(fault) => format!(
            "is not a regular expression: {} at character {}",
            fault.kind(),
            fault.span().start.column
        ),
        _ => "is not a regular expression".to_owned(),
    })
}

fn compiles(hir: &Hir) -> Result<(), String> {
    let config = thompson::Config::new()
        .nfa_size_limit(Some(KEY_AUTOMATON_BYTES))
        .which_captures(thompson::WhichCaptures::None);
    match thompson::Compiler::new()
        .configure(config)
        .build_from_hir(hir)
    {
        Ok(_) => Ok(()),
        Err(_) => Err(format!(
            "compiles to an automaton of more than {KEY_AUTOMATON_BYTES} bytes, which is the limit"
        )),
    }
}

/// An upper bound of the number of states, up to a small factor.
fn parts(hir: &Hir) -> usize {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => 1,
        HirKind::Literal(literal) => literal.0.len(),
        HirKind::Class(Class::Bytes(class)) => 1 + class.ranges().len(),
        // A range of characters can take several sequences of byte ranges.
        HirKind::Class(Class::Unicode(class)) => 1 + 8 * class.ranges().len(),
        HirKind::Repetition(repetition) => {
            let times = repetition
                .max
                .unwrap_or(repetition.min)
                .max(repetition.min)
                .max(1) as usize;
            parts(&repetition.sub)
                .saturating_add(1)
                .saturating_mul(times)
        }
        HirKind::Capture(capture) => parts(&capture.sub),
        HirKind::Concat(subs) | HirKind::Alternation(subs) => subs
            .iter()
            .fold(1, |sum, sub| parts(sub).saturating_add(sum)),
    }
}

/// The glob of an expression of literals joined by `.*`, optionally anchored; `None` for other expressions.
fn simple(text: &str) -> Option<Glob> {
    let (anchored, mut rest) = match text.strip_prefix('^') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let mut parts = if anchored {
        vec![String::new()]
    } else {
        vec![String::new(), String::new()]
    };
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        let literal = match c {
            '.' => {
                rest = rest.strip_prefix('*')?;
                // Lazy repetition matches the same keys as greedy repetition.
                if rest.starts_with(['?', '*', '+', '{']) {
                    return None;
                }
                parts.push(String::new());
                continue;
            }
            '$' if rest.is_empty() => return Some(glob(parts)),
            '\\' => {
                let escaped = rest
                    .chars()
                    .next()
                    .filter(char::is_ascii_punctuation)
                    .filter(|c| !matches!(c, '<' | '>'))?;
                rest = &rest[1..];
                escaped
            }
            '^' | '$' | '*' | '+' | '?' | '(' | ')' | '[' | ']' | '{' | '}' | '|' => return None,
            c => c,
        };
        if rest.starts_with(['*', '+', '?', '{']) {
            return None;
        }
        parts.last_mut()?.push(literal);
    }
    parts.push(String::new());
    Some(glob(parts))
}

/// Merges consecutive gaps.
fn glob(parts: Vec<String>) -> Glob {
    let last = parts.len() - 1;
    let kept = parts
        .into_iter()
        .enumerate()
        .filter(|(at, part)| *at == 0 || *at == last || !part.is_empty());
    Glob::new(kept.map(|(_, part)| part).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simple_expressions_agree_with_the_automaton() {
        let expressions = [
            "",
            "^",
            "$",
            "^$",
            "a",
            "^a",
            "a$",
            "^a$",
            ".*",
            "^.*$",
            "^.*a",
            "a.*",
            "^DS#.*#DSR#",
            "^DS#x#.*#DSR#main$",
            "a.*.*b",
            "é.*ü",
            r"^a\.b\$",
            r"x\\y",
            "^DS#My House#",
            "a.*b.*c$",
            r"\#a",
            r"a\/b",
        ];
        let keys = [
            "",
            "a",
            "b",
            "ab",
            "ba",
            "DS#x#DSR#main",
            "DS#x##DSR#main",
            "DS##DSR#",
            "a.b$",
            "x\\y",
            "éü",
            "éxü",
            "DS#My House#1",
            "axbxc",
            "abcc",
            "a\nb",
            "\na",
            "a\n",
            "#a",
            "a/b",
            "x\nDS#y#DSR#",
            "a#b",
        ];
        for expression in expressions {
            let (key, _) = Key::parse(expression).unwrap();
            assert!(key.is_glob(), "{expression}");
            let plain = Regex::new(expression).unwrap();
            for text in keys {
                assert_eq!(
                    key.is_match(text),
                    plain.is_match(text),
                    "{expression} on {text:?}"
                );
            }
        }
    }

    #[test]
    fn the_rest_is_left_to_the_automaton() {
        for expression in [
            "a+", "^a|b$", "[ab]", "a?", "(a)", "a{2}", r"\d", "a.b", ".*?", "a$b", "a^", "ab*",
            r"a\.+", ".*+", r"\<a",
        ] {
            if let Ok((key, _)) = Key::parse(expression) {
                assert!(!key.is_glob(), "{expression}");
                assert_eq!(
                    key.is_match("ab"),
                    Regex::new(expression).unwrap().is_match("ab"),
                    "{expression}"
                );
            }
        }
    }

    #[test]
    fn what_is_not_an_expression_says_where() {
        assert_eq!(
            Key::parse("a(b").unwrap_err(),
            "is not a regular expression: unclosed group at character 2"
        );
        assert!(Key::parse("(?=a)").is_err());
        assert!(
            Key::parse(&"a".repeat(KEY_BYTES + 1))
                .unwrap_err()
                .contains("the limit is 2048")
        );
    }

    #[test]
    fn bombs_are_refused() {
        for bomb in [
            r"(\w{100}){100}",
            "((a{1000}){1000}){1000}",
            r"\pL{5000}",
            "(((((((((x{10}){10}){10}){10}){10}){10}){10}){10}){10})",
        ] {
            assert!(
                Key::parse(bomb)
                    .unwrap_err()
                    .contains("more than 1048576 bytes"),
                "{bomb}"
            );
        }
        let deep = format!("{}a{}", "(".repeat(500), ")".repeat(500));
        assert!(Key::parse(&deep).is_err());
        // Expressions that are accepted without compiling do compile.
        for fine in [
            r"^DS#\w+#",
            "[^#]{1,64}#",
            r"^(?i)house#[0-9]{1,20}",
            r"\pL{2}",
        ] {
            let hir = hir(fine).unwrap();
            assert!(Key::parse(fine).is_ok(), "{fine}");
            assert!(compiles(&hir).is_ok(), "{fine}");
        }
    }
}
