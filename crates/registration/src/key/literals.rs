//! Literals that every match of an expression contains; the index finds expressions by them.

use regex_syntax::hir::literal::{ExtractKind, Extractor};
use regex_syntax::hir::{Hir, HirKind, Look};

use crate::glob::Glob;

/// Maximum alternatives in the index.
const MOST: usize = 64;

/// Maximum size of a character class that is expanded; a larger one ends a prefix.
const CLASS: usize = 4;

/// Literals of which a matching key contains at least one. Empty if none are known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Literals {
    /// At the start.
    pub(crate) prefixes: Vec<Vec<u8>>,
    /// Anywhere.
    pub(crate) inner: Vec<Vec<u8>>,
}

impl Literals {
    pub(crate) fn of_glob(glob: &Glob) -> Literals {
        let one = |text: &str| {
            if text.is_empty() {
                Vec::new()
            } else {
                vec![text.as_bytes().to_vec()]
            }
        };
        let inner = glob.parts()[1..].iter().max_by_key(|part| part.len());
        Literals {
            prefixes: one(glob.prefix()),
            inner: inner.map(|part| one(part)).unwrap_or_default(),
        }
    }

    pub(crate) fn of_regex(hir: &Hir) -> Literals {
        Literals {
            prefixes: prefixes(hir).unwrap_or_default(),
            inner: required(hir).unwrap_or_default(),
        }
    }
}

fn prefixes(hir: &Hir) -> Option<Vec<Vec<u8>>> {
    if !hir.properties().look_set_prefix().contains(Look::Start) {
        return None;
    }
    let mut found = Extractor::new()
        .kind(ExtractKind::Prefix)
        .limit_class(CLASS)
        .limit_total(MOST)
        .extract(hir);
    found.minimize_by_preference();
    let literals: Vec<Vec<u8>> = found
        .literals()?
        .iter()
        .map(|literal| literal.as_bytes().to_vec())
        .collect();
    useful(literals)
}

/// The best set of inner literals of which every match contains one.
fn required(hir: &Hir) -> Option<Vec<Vec<u8>>> {
    match hir.kind() {
        HirKind::Literal(literal) => useful(vec![literal.0.to_vec()]),
        HirKind::Capture(capture) => required(&capture.sub),
        HirKind::Repetition(repetition) if repetition.min > 0 => required(&repetition.sub),
        HirKind::Concat(subs) => subs
            .iter()
            .filter_map(required)
            .max_by_key(|set| set.iter().map(Vec::len).min()),
        HirKind::Alternation(subs) => {
            let sets: Option<Vec<_>> = subs.iter().map(required).collect();
            useful(sets?.into_iter().flatten().collect())
        }
        _ => None,
    }
}

fn useful(mut literals: Vec<Vec<u8>>) -> Option<Vec<Vec<u8>>> {
    literals.sort_unstable();
    literals.dedup();
    let fine =
        (1..=MOST).contains(&literals.len()) && literals.iter().all(|literal| !literal.is_empty());
    fine.then_some(literals)
}

#[cfg(test)]
mod tests {
    use crate::key::Key;

    fn of(expression: &str) -> (Vec<String>, Vec<String>) {
        let (_, literals) = Key::parse(expression).unwrap();
        let texts = |set: Vec<Vec<u8>>| {
            set.into_iter()
                .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
                .collect()
        };
        (texts(literals.prefixes), texts(literals.inner))
    }

    #[test]
    fn what_must_be_there() {
        let check = |expression: &str, prefixes: &[&str], inner: &[&str]| {
            assert_eq!(
                of(expression),
                (
                    prefixes.iter().map(|s| s.to_string()).collect(),
                    inner.iter().map(|s| s.to_string()).collect()
                ),
                "{expression}"
            );
        };
        check("^DS#a#.*#DSR#main$", &["DS#a#"], &["#DSR#main"]);
        check("#DSD#", &[], &["#DSD#"]);
        check(".*", &[], &[]);
        check("^DS#a$", &["DS#a"], &[]);
        check("^DS#[0-9]+#door", &["DS#"], &["#door"]);
        check("^DS#[ab]#", &["DS#a#", "DS#b#"], &["DS#"]);
        check("^(red|green)#", &["green#", "red#"], &["green", "red"]);
        check("(kitchen|bath)[0-9]", &[], &["bath", "kitchen"]);
        check("^a|b", &[], &["a", "b"]);
        check("x*", &[], &[]);
        check("[0-9]{3}", &[], &[]);
    }
}
