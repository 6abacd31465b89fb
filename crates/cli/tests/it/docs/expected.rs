//! Compares output with a page. Ids, secrets, times, durations and the width of columns may differ; `...`
//! stands for anything.

use std::collections::BTreeMap;

use regex::{Captures, Regex};

/// Values that differ from run to run: a name, and its form. An id stands for the same value on the whole page.
const VOLATILE: [(&str, &str); 8] = [
    ("secret", r"whsec_[A-Za-z0-9+/=]+"),
    (
        "message",
        r"\d+-\d{13}-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    ),
    ("uuid", r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    ("generation", r"\b1\d{18}-[0-9a-f]{8}\b"),
    ("id", r"[0-9a-f]{16,64}"),
    ("time", r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"),
    ("epoch", r"\b1[78]\d{8}(?:\d{3}|\d{9})?\b"),
    ("duration", r"\b\d+ ms\b"),
];

/// Times in examples are data, and are compared exactly.
const EXAMPLE_DAY: &str = "2026-01-31T";

#[derive(Default)]
pub(crate) struct Expected {
    /// Ids and secrets of the page, and their actual values.
    values: BTreeMap<String, String>,
}

impl Expected {
    /// A command with the actual ids in place of those on the page.
    pub(crate) fn translate(&self, command: &str) -> String {
        let mut command = command.to_owned();
        for (page, actual) in &self.values {
            command = command.replace(page, actual);
        }
        command
    }

    /// Output with the ids of the page in place of the actual ones.
    pub(crate) fn restore(&self, output: &str) -> String {
        let mut output = output.to_owned();
        for (page, actual) in &self.values {
            output = output.replace(actual, page);
        }
        output
    }

    /// Compares, and keeps the ids of an output that is as expected.
    pub(crate) fn accepts(&mut self, page: &str, actual: &str) -> bool {
        let mut ids = Vec::new();
        let pattern = self.pattern(page, &mut ids);
        let Some(found) = pattern.captures(actual.trim_end()) else {
            return false;
        };
        for (group, id) in ids.iter().enumerate() {
            self.values.insert(id.clone(), found[group + 1].to_owned());
        }
        true
    }

    fn pattern(&self, page: &str, ids: &mut Vec<String>) -> Regex {
        let forms: Vec<String> = VOLATILE
            .iter()
            .map(|(name, form)| format!("(?P<{name}>{form})"))
            .chain([
                r"(?P<lines>(?m:^)\.\.\.(?m:$))".to_owned(),
                r"(?P<any>\.\.\.)".to_owned(),
            ])
            .collect();
        let volatile = Regex::new(&forms.join("|")).unwrap();
        let mut pattern = String::from("^");
        let mut end = 0;
        for found in volatile.captures_iter(page) {
            let whole = found.get(0).unwrap();
            pattern += &literal(&page[end..whole.start()]);
            pattern += &self.form(&found, ids);
            end = whole.end();
        }
        pattern += &literal(&page[end..]);
        Regex::new(&(pattern + "$")).unwrap()
    }

    fn form(&self, found: &Captures<'_>, ids: &mut Vec<String>) -> String {
        let text = &found[0];
        if found.name("lines").is_some() {
            return "(?s:.*)".to_owned();
        }
        if found.name("any").is_some() {
            return r"[^\n]*".to_owned();
        }
        if text.starts_with(EXAMPLE_DAY) {
            return regex::escape(text);
        }
        let (name, form) = VOLATILE
            .iter()
            .find(|(name, _)| found.name(name).is_some())
            .unwrap();
        if !["secret", "message", "uuid", "id"].contains(name) {
            return format!("(?:{form})");
        }
        if let Some(actual) = self.values.get(text) {
            return regex::escape(actual);
        }
        ids.push(text.to_owned());
        format!("({form})")
    }
}

/// Text as written, with columns of any width.
fn literal(text: &str) -> String {
    let columns = Regex::new("  +").unwrap();
    columns
        .replace_all(&regex::escape(text), " {2,}")
        .into_owned()
}
