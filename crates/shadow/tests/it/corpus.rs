//! The hand-written corpus of `testdata/`, run against the crate and against the naive reference.
//!
//! All cases of a kind are run before failures are reported.

use std::collections::BTreeSet;
use std::fmt::Write;

use antumbra_shadow::{Document, Mode, acknowledge, apply, delta, diff, merge};

use crate::reference::{self, value};
use crate::testdata::{self, AcknowledgeCase, DiffCase, MergeCase};
use crate::verdicts;

/// Failures by case, and the names of all cases.
#[derive(Default)]
struct Outcome {
    names: BTreeSet<String>,
    failures: String,
}

impl Outcome {
    fn case(&mut self, file: &std::path::Path, name: &str) -> String {
        let file = file.file_name().unwrap_or_default().to_string_lossy();
        let title = format!("{file}: {name}");
        assert!(self.names.insert(title.clone()), "two cases named {title}");
        title
    }

    fn check<T: PartialEq + std::fmt::Display>(
        &mut self,
        title: &str,
        what: &str,
        expected: T,
        actual: T,
    ) {
        if expected != actual {
            let _ = write!(
                self.failures,
                "\n--- {title}\n{what}, expected:\n{expected}\n{what}, actual:\n{actual}\n"
            );
        }
    }

    fn end(self, at_least: usize) {
        assert!(self.failures.is_empty(), "{}", self.failures);
        let count = self.names.len();
        assert!(
            count >= at_least,
            "{count} cases, at least {at_least} belong here"
        );
    }
}

fn lines<'a>(lines: impl IntoIterator<Item = (&'a str, &'a str, &'a str)>) -> String {
    let mut text = String::new();
    for (pointer, verdict, note) in lines {
        let _ = writeln!(text, "  {pointer:?}  {verdict}  {note}");
    }
    text
}

#[test]
fn merges() {
    let mut outcome = Outcome::default();
    for (path, text) in testdata::files("merge") {
        for case in testdata::cases::<MergeCase<'_>>(&path, &text) {
            let title = outcome.case(&path, &case.name);
            let mode: Mode = case.mode.parse().expect("a mode");
            let (stored, sent, model) = (
                testdata::document(case.stored),
                testdata::document(case.sent),
                case.model.model(),
            );
            let merged = merge(&stored, &sent, mode, &model, case.now());
            let expected = testdata::document(case.document);
            outcome.check(
                &title,
                "document",
                expected.clone(),
                merged.document.clone(),
            );
            let note = |line: &Vec<String>| line.get(2).cloned().unwrap_or_default();
            let notes: Vec<String> = case.verdicts.iter().map(note).collect();
            let expected_verdicts = case.verdicts.iter().zip(&notes);
            outcome.check(
                &title,
                "verdicts",
                lines(
                    expected_verdicts
                        .map(|(line, note)| (line[0].as_str(), line[1].as_str(), note.as_str())),
                ),
                lines(
                    verdicts(&merged.changes)
                        .iter()
                        .map(|line| (line.pointer.as_str(), line.verdict.as_str(), line.note)),
                ),
            );
            outcome.check(&title, "changed", stored != expected, merged.changed());
            if testdata::is_exact(case.stored) && testdata::is_exact(case.sent) {
                let naive = reference::merge::merge(
                    &value::parse(stored.as_str()),
                    &value::parse(sent.as_str()),
                    mode,
                    &model,
                    case.now().nanoseconds(),
                );
                let document = Document::from_value(&naive.document).expect("a document");
                outcome.check(&title, "the reference's document", expected, document);
                outcome.check(
                    &title,
                    "the reference's verdicts",
                    lines(
                        case.verdicts.iter().zip(&notes).map(|(line, note)| {
                            (line[0].as_str(), line[1].as_str(), note.as_str())
                        }),
                    ),
                    lines(
                        naive
                            .verdicts
                            .iter()
                            .map(|v| (v.pointer.as_str(), v.verdict, v.note)),
                    ),
                );
            }
        }
    }
    outcome.end(250);
}

#[test]
fn diffs() {
    let mut outcome = Outcome::default();
    for (path, text) in testdata::files("diff") {
        for case in testdata::cases::<DiffCase<'_>>(&path, &text) {
            let title = outcome.case(&path, &case.name);
            let (old, new, model) = (
                testdata::document(case.old),
                testdata::document(case.new),
                case.model.model(),
            );
            let found = diff(old.view(), new.view(), &model);
            let mut expected = reference::diff::Lines::default();
            expected.added.extend(
                case.added
                    .iter()
                    .map(|(p, v)| (p.clone(), testdata::canonical(v))),
            );
            expected.removed.extend(
                case.removed
                    .iter()
                    .map(|(p, v)| (p.clone(), testdata::canonical(v))),
            );
            let update = |v: &testdata::UpdateCase<'_>| {
                (testdata::canonical(v.old), testdata::canonical(v.new))
            };
            expected
                .updated
                .extend(case.updated.iter().map(|(p, v)| (p.clone(), update(v))));
            expected.value_changed = case.value_changed;
            outcome.check(
                &title,
                "diff",
                expected.to_string(),
                reference::diff::Lines::of(&found).to_string(),
            );
            let written = serde_json::to_string(&found).expect("a diff has a JSON form");
            outcome.check(
                &title,
                "diff as JSON",
                case.json(),
                Document::parse(&written).expect("an object"),
            );
            let empty = expected.added.is_empty()
                && expected.updated.is_empty()
                && expected.removed.is_empty();
            outcome.check(&title, "emptiness", empty, found.is_empty());
            match apply(&old, &found) {
                Ok(applied) => outcome.check(&title, "apply", new.clone(), applied),
                Err(e) => outcome.check(&title, "apply", new.to_string(), e.to_string()),
            }
            if testdata::is_exact(case.old) && testdata::is_exact(case.new) {
                let naive = reference::diff::diff(
                    &value::parse(old.as_str()),
                    &value::parse(new.as_str()),
                    &model,
                );
                outcome.check(
                    &title,
                    "the reference's diff",
                    expected.to_string(),
                    naive.to_string(),
                );
            }
        }
    }
    outcome.end(60);
}

#[test]
fn acknowledgements() {
    let mut outcome = Outcome::default();
    for (path, text) in testdata::files("acknowledge") {
        for case in testdata::cases::<AcknowledgeCase<'_>>(&path, &text) {
            let title = outcome.case(&path, &case.name);
            let (reported, desired, model) = (
                testdata::document(case.reported),
                testdata::document(case.desired),
                case.model.model(),
            );
            let remaining = testdata::document(case.remaining);
            let found = acknowledge(&reported, &desired, &model);
            outcome.check(
                &title,
                "remaining",
                remaining.clone(),
                found.desired.clone(),
            );
            outcome.check(
                &title,
                "delta",
                remaining.clone(),
                delta(&desired, &reported, &model),
            );
            let mut pointers = Vec::new();
            found.acknowledged.for_each(|pointer, value| {
                let desired = desired.pointer(pointer).map(|view| view.to_json());
                outcome.check(
                    &title,
                    pointer,
                    desired.unwrap_or_default(),
                    value.to_json(),
                );
                pointers.push(pointer.to_owned());
            });
            outcome.check(&title, "count", pointers.len(), found.acknowledged.len());
            outcome.check(
                &title,
                "acknowledged",
                case.acknowledged.join("\n"),
                pointers.join("\n"),
            );
            if testdata::is_exact(case.reported) && testdata::is_exact(case.desired) {
                let naive = reference::acknowledge::acknowledge(
                    &value::parse(reported.as_str()),
                    &value::parse(desired.as_str()),
                    &model,
                );
                let left = Document::from_value(&naive.remaining).expect("a document");
                outcome.check(&title, "the reference's remaining", remaining, left);
                outcome.check(
                    &title,
                    "the reference's acknowledged",
                    case.acknowledged.join("\n"),
                    naive.acknowledged.join("\n"),
                );
            }
        }
    }
    outcome.end(60);
}
