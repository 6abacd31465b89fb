//! Patterns: shared matching equals matching one by one, `$or` is a disjunction, and explain agrees with plan.
//!
//! The input is the old document, the new document, and patterns, one per line.

use antumbra_registration::Registrations;
use antumbra_shadow::Document;

use super::registrations::{agree, with_change};

/// Number of patterns from which those of one key share a structure.
const TOGETHER: usize = 10;
/// More patterns take long without further coverage.
const PATTERNS: usize = 6;

pub(crate) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let mut lines = text.split('\n');
    let mut document = || Document::parse(lines.next()?).ok();
    let (Some(old), Some(new)) = (document(), document()) else {
        return;
    };
    let patterns: Vec<(&str, Registrations)> = lines
        .take(PATTERNS)
        .filter_map(|line| Some((line, load(&[line.to_owned()])?)))
        .collect();
    for (old, new) in [
        (Some(&old), Some(&new)),
        (None, Some(&new)),
        (Some(&old), None),
    ] {
        with_change("DS#device#DSR#main", true, old, new, |change| {
            let matches = |registrations: &Registrations| agree(registrations, change);
            let alone: Vec<bool> = patterns.iter().map(|(_, one)| matches(one)[0]).collect();
            if patterns.is_empty() {
                return;
            }
            let many = (0..TOGETHER.max(patterns.len())).map(|at| at % patterns.len());
            let many: Vec<usize> = many.collect();
            let texts: Vec<String> = many.iter().map(|at| patterns[*at].0.to_owned()).collect();
            let expected: Vec<bool> = many.iter().map(|at| alone[*at]).collect();
            assert_eq!(matches(&load(&texts).unwrap()), expected, "{texts:?}");
            for (first, second) in [(0, patterns.len() - 1), (patterns.len() - 1, 0)] {
                let either = format!(
                    r#"{{"$or":[{},{}]}}"#,
                    patterns[first].0, patterns[second].0
                );
                // The disjunction may be too deep, or have too many alternatives.
                if let Some(either) = load(&[either]) {
                    assert_eq!(matches(&either), [alone[first] || alone[second]]);
                }
            }
        });
    }
}

/// Returns registrations with these patterns, or `None` if one is invalid.
fn load(patterns: &[String]) -> Option<Registrations> {
    let file = |(number, pattern): (usize, &String)| {
        let name = format!("{number}.json");
        let text = format!(
            r#"{{"name":"r{number}","on":{{"pattern":{pattern}}},"to":{{"clients":{{}}}}}}"#
        );
        (name, text)
    };
    let files = patterns.iter().enumerate().map(file);
    Registrations::load(files, &|_| None).ok()
}
