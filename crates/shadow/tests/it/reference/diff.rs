//! Diff, naively.

use std::collections::BTreeMap;
use std::fmt;

use antumbra_shadow::{Diff, Document, Model};
use serde_json::Value;

use super::value::{all_names, element, ids, leaves, member, time, without_time};

/// A diff as text, so that two can be compared and shown.
#[derive(Default, PartialEq, Eq)]
pub(crate) struct Lines {
    pub(crate) added: BTreeMap<String, String>,
    pub(crate) updated: BTreeMap<String, (String, String)>,
    pub(crate) removed: BTreeMap<String, String>,
    pub(crate) value_changed: bool,
}

impl fmt::Display for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (pointer, value) in &self.added {
            writeln!(f, "  added {pointer:?} {value}")?;
        }
        for (pointer, (old, new)) in &self.updated {
            writeln!(f, "  updated {pointer:?} {old} to {new}")?;
        }
        for (pointer, value) in &self.removed {
            writeln!(f, "  removed {pointer:?} {value}")?;
        }
        write!(f, "  value changed: {}", self.value_changed)
    }
}

impl Lines {
    /// The diff that the crate found. A pointer that is reported twice is an error.
    pub(crate) fn of(diff: &Diff<'_>) -> Lines {
        let mut lines = Lines {
            value_changed: diff.value_changed(),
            ..Lines::default()
        };
        for (pointer, value) in diff.added() {
            let before = lines.added.insert(pointer.to_string(), value.to_json());
            assert!(before.is_none(), "{pointer} is added twice");
        }
        for (pointer, old, new) in diff.updated() {
            let before = lines
                .updated
                .insert(pointer.to_string(), (old.to_json(), new.to_json()));
            assert!(before.is_none(), "{pointer} is updated twice");
        }
        for (pointer, value) in diff.removed() {
            let before = lines.removed.insert(pointer.to_string(), value.to_json());
            assert!(before.is_none(), "{pointer} is removed twice");
        }
        lines
    }
}

/// Compares two documents.
pub(crate) fn diff(old: &Value, new: &Value, model: &Model) -> Lines {
    let mut comparison = Comparison {
        model,
        lines: Lines::default(),
    };
    comparison.members("", "", old, new);
    comparison.lines
}

struct Comparison<'m> {
    model: &'m Model,
    lines: Lines,
}

/// A value in canonical text. Only documents have one, so it travels inside a document.
fn text(value: &Value) -> String {
    let wrapped = serde_json::json!({ "v": value });
    let document = Document::from_value(&wrapped).expect("a document");
    document
        .pointer("/v")
        .expect("the member just written")
        .to_json()
}

impl Comparison<'_> {
    fn added(&mut self, path: &str, value: &Value) {
        let found = leaves(path, value, self.model);
        self.lines.added.extend(
            found
                .into_iter()
                .map(|(pointer, value)| (pointer, text(&value))),
        );
        self.lines.value_changed = true;
    }

    fn removed(&mut self, path: &str, value: &Value) {
        let found = leaves(path, value, self.model);
        self.lines.removed.extend(
            found
                .into_iter()
                .map(|(pointer, value)| (pointer, text(&value))),
        );
        self.lines.value_changed = true;
    }

    fn updated(&mut self, path: &str, old: &Value, new: &Value) {
        let timestamped = time(old, self.model).is_some() && time(new, self.model).is_some();
        if !timestamped || without_time(old, self.model) != without_time(new, self.model) {
            self.lines.value_changed = true;
        }
        self.lines
            .updated
            .insert(path.to_owned(), (text(old), text(new)));
    }

    fn members(&mut self, was: &str, is: &str, old: &Value, new: &Value) {
        for key in &all_names(old, new) {
            let (was, is) = (member(was, key), member(is, key));
            match (old.get(key), new.get(key)) {
                (Some(old), Some(new)) => self.values(&was, &is, old, new),
                (Some(old), None) => self.removed(&was, old),
                (None, Some(new)) => self.added(&is, new),
                (None, None) => {}
            }
        }
    }

    fn values(&mut self, was: &str, is: &str, old: &Value, new: &Value) {
        if old == new {
            return;
        }
        let plain = time(old, self.model).is_none() && time(new, self.model).is_none();
        match (old, new) {
            (Value::Object(_), Value::Object(members)) if plain && !members.is_empty() => {
                self.members(was, is, old, new);
            }
            (Value::Array(old), Value::Array(items)) if !items.is_empty() => {
                self.arrays(was, is, old, items)
            }
            _ => self.updated(is, old, new),
        }
    }

    fn arrays(&mut self, was: &str, is: &str, old: &[Value], new: &[Value]) {
        if let (Some(old_ids), Some(new_ids)) = (ids(old, self.model), ids(new, self.model)) {
            let kept: Vec<&Value> = old_ids.iter().filter(|id| new_ids.contains(id)).collect();
            let in_front: Vec<&Value> = new_ids.iter().take(kept.len()).collect();
            if kept == in_front {
                return self.by_id(was, is, (old, &old_ids), (new, &new_ids));
            }
        }
        for index in 0..old.len().max(new.len()) {
            let (was, is) = (element(was, index), element(is, index));
            match (old.get(index), new.get(index)) {
                (Some(old), Some(new)) => self.values(&was, &is, old, new),
                (Some(old), None) => self.removed(&was, old),
                (None, Some(new)) => self.added(&is, new),
                (None, None) => {}
            }
        }
    }

    fn by_id(&mut self, was: &str, is: &str, old: (&[Value], &[Value]), new: (&[Value], &[Value])) {
        for (at, (value, id)) in old.0.iter().zip(old.1).enumerate() {
            match new.1.iter().position(|other| other == id) {
                Some(index) => {
                    self.values(&element(was, at), &element(is, index), value, &new.0[index])
                }
                None => self.removed(&element(was, at), value),
            }
        }
        for (at, (value, id)) in new.0.iter().zip(new.1).enumerate() {
            if !old.1.contains(id) {
                self.added(&element(is, at), value);
            }
        }
    }
}
