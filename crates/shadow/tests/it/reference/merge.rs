//! Merge, naively: one function per rule, values copied freely.

use antumbra_shadow::{Arrays, Mode, Model};
use serde_json::{Map, Value};

use super::value::{all_names, element, ids, is_container, leaves, member, time};

/// The verdict on one leaf; the note may be empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) pointer: String,
    pub(crate) verdict: &'static str,
    pub(crate) note: &'static str,
}

/// Result of a merge.
pub(crate) struct Merged {
    pub(crate) document: Value,
    pub(crate) verdicts: Vec<Line>,
}

/// Merges two documents.
pub(crate) fn merge(stored: &Value, sent: &Value, mode: Mode, model: &Model, now: i128) -> Merged {
    let mut merge = Merge {
        mode,
        model,
        now,
        verdicts: Vec::new(),
    };
    let document = Value::Object(merge.members("", stored, sent));
    Merged {
        document,
        verdicts: merge.verdicts,
    }
}

struct Merge<'m> {
    mode: Mode,
    model: &'m Model,
    now: i128,
    verdicts: Vec<Line>,
}

impl Merge<'_> {
    fn record(&mut self, pointer: &str, verdict: &'static str, note: &'static str) {
        self.verdicts.push(Line {
            pointer: pointer.to_owned(),
            verdict,
            note,
        });
    }

    fn record_leaves(
        &mut self,
        path: &str,
        value: &Value,
        verdict: &'static str,
        note: &'static str,
    ) {
        for (pointer, _) in leaves(path, value, self.model) {
            self.record(&pointer, verdict, note);
        }
    }

    /// Two plain objects, or the two roots.
    fn members(&mut self, path: &str, stored: &Value, sent: &Value) -> Map<String, Value> {
        let mut result = Map::new();
        for key in &all_names(stored, sent) {
            let here = member(path, key);
            let merged = match (stored.get(key), sent.get(key)) {
                (Some(old), None) => self.unsent(&here, old),
                (Some(old), Some(new)) if self.says_null(old, new) => self.nulled(&here, old),
                (None, None) => None,
                (None, Some(new)) if self.is_nothing(new) => None,
                (None, Some(new)) => self.added(&here, new, self.member_note(path, key, new)),
                (Some(old), Some(new)) => {
                    self.both(&here, old, new, self.member_note(path, key, new))
                }
            };
            if let Some(value) = merged {
                result.insert(key.clone(), value);
            }
        }
        result
    }

    /// Null, or an object of nothing but nulls.
    fn is_nothing(&self, sent: &Value) -> bool {
        match sent {
            Value::Object(members) if time(sent, self.model).is_none() => {
                !members.is_empty() && members.values().all(|value| self.is_nothing(value))
            }
            other => other.is_null(),
        }
    }

    /// A timestamped value beyond the bound, or a container of which nothing else would be taken.
    fn is_future(&self, sent: &Value) -> bool {
        let Some(bound) = self.model.max_future else {
            return false;
        };
        match (sent, time(sent, self.model)) {
            (_, Some(time)) => time > self.now + bound.as_nanos() as i128,
            (Value::Object(members), None) => {
                members.values().any(|value| self.is_future(value))
                    && members
                        .values()
                        .all(|value| self.is_future(value) || self.is_nothing(value))
            }
            (Value::Array(items), None) if self.model.arrays == Arrays::Matched => {
                let mut future = items.iter().map(|item| self.is_future(item));
                future.next() == Some(true)
                    && (ids(items, self.model).is_none() || future.all(|future| future))
            }
            _ => false,
        }
    }

    /// Null, or an object of nothing but nulls where no members are stored.
    fn says_null(&self, stored: &Value, sent: &Value) -> bool {
        let has_members = stored
            .as_object()
            .is_some_and(|members| !members.is_empty());
        let plain = time(stored, self.model).is_none();
        sent.is_null() || self.is_nothing(sent) && !(plain && has_members)
    }

    /// A scalar timestamp field in a plain object is no timestamp, or the object would not be plain.
    fn member_note(&self, path: &str, key: &str, sent: &Value) -> &'static str {
        let is_time = self.model.timestamp_fields.iter().any(|field| field == key);
        let noted = !path.is_empty() && is_time && !is_container(sent);
        if noted { "not a timestamp" } else { "" }
    }

    fn unsent(&mut self, path: &str, stored: &Value) -> Option<Value> {
        let keep = self.mode != Mode::ClientIsMaster;
        self.record_leaves(
            path,
            stored,
            if keep { "kept: unsent" } else { "removed" },
            "",
        );
        keep.then(|| stored.clone())
    }

    fn nulled(&mut self, path: &str, stored: &Value) -> Option<Value> {
        let keep = self.mode == Mode::ServerIsMaster;
        let (verdict, note) = if keep {
            ("kept: unsent", "null kept")
        } else {
            ("removed", "")
        };
        self.record_leaves(path, stored, verdict, note);
        keep.then(|| stored.clone())
    }

    /// A sent value where none was stored. An object without content is not added.
    fn added(&mut self, path: &str, sent: &Value, note: &'static str) -> Option<Value> {
        if time(sent, self.model).is_some() {
            let future = self.is_future(sent);
            self.record(path, if future { "kept: future" } else { "added" }, "");
            return (!future).then(|| sent.clone());
        }
        match sent {
            Value::Object(members) if !members.is_empty() => {
                let members = self.members(path, &Value::Null, sent);
                (!members.is_empty()).then_some(Value::Object(members))
            }
            Value::Array(items) if !items.is_empty() && self.model.arrays == Arrays::Matched => {
                if self.is_future(sent) {
                    self.record(path, "kept: future", "");
                    return None;
                }
                let named = ids(items, self.model).is_some();
                let mut result = Vec::new();
                let mut refused = false;
                for (index, item) in items.iter().enumerate() {
                    refused = self.is_future(item) || refused && !named;
                    let index = if named { result.len() } else { index };
                    result.extend(self.added_element(&element(path, index), item, refused));
                }
                Some(Value::Array(result))
            }
            _ => {
                self.record(path, "added", note);
                Some(sent.clone())
            }
        }
    }

    fn added_element(&mut self, path: &str, sent: &Value, refused: bool) -> Option<Value> {
        if refused {
            self.record(path, "kept: future", "");
            return None;
        }
        let value = self.added(path, sent, "");
        if value.is_none() {
            self.record(path, "added", "");
        }
        Some(value.unwrap_or_else(|| Value::Object(Map::new())))
    }

    /// A stored and a sent value; the sent one is not a null member.
    fn both(
        &mut self,
        path: &str,
        stored: &Value,
        sent: &Value,
        note: &'static str,
    ) -> Option<Value> {
        match (time(stored, self.model), time(sent, self.model)) {
            (Some(old), Some(new)) => {
                let verdict = match new.cmp(&old) {
                    std::cmp::Ordering::Greater if self.is_future(sent) => "kept: future",
                    std::cmp::Ordering::Greater => "updated",
                    std::cmp::Ordering::Equal => "kept: equal",
                    std::cmp::Ordering::Less => "kept: stale",
                };
                self.record(path, verdict, "");
                let value = if verdict == "updated" { sent } else { stored };
                return Some(value.clone());
            }
            (None, None) => {}
            _ => return self.replaced(path, stored, sent, note),
        }
        match (stored, sent) {
            (Value::Object(old), Value::Object(new)) => {
                let result = self.members(path, stored, sent);
                if old.is_empty() && new.is_empty() {
                    self.record(path, "kept: same", "");
                } else if old.is_empty() && result.is_empty() {
                    self.record(path, "kept: unsent", "");
                }
                let stays = !result.is_empty() || new.is_empty() || old.is_empty();
                stays.then_some(Value::Object(result))
            }
            (Value::Array(old), Value::Array(new)) if self.model.arrays == Arrays::Matched => {
                if old.is_empty() && new.is_empty() {
                    self.record(path, "kept: same", "");
                }
                Some(self.arrays(path, old, new))
            }
            _ if stored == sent => {
                self.record(path, "kept: same", note);
                Some(stored.clone())
            }
            _ => self.replaced(path, stored, sent, note),
        }
    }

    /// One entry for all that is replaced, so it also carries the notes of leaves without an entry.
    fn replaced(
        &mut self,
        path: &str,
        stored: &Value,
        sent: &Value,
        note: &'static str,
    ) -> Option<Value> {
        if self.is_future(sent) {
            self.record(path, "kept: future", note);
            return Some(stored.clone());
        }
        let note = if self.misses_a_time(sent) {
            "not a timestamp"
        } else {
            note
        };
        self.record(path, "updated", note);
        Some(self.taken(sent))
    }

    fn misses_a_time(&self, sent: &Value) -> bool {
        if time(sent, self.model).is_some() {
            return false;
        }
        let mut members = sent.as_object().into_iter().flatten();
        // In an array that is one value nothing is looked at.
        let matched = self.model.arrays == Arrays::Matched;
        let mut items = sent.as_array().filter(|_| matched).into_iter().flatten();
        members.any(|(key, value)| {
            let scalar = !is_container(value) && !value.is_null();
            self.model.timestamp_fields.contains(key) && scalar || self.misses_a_time(value)
        }) || items.any(|item| self.misses_a_time(item))
    }

    fn arrays(&mut self, path: &str, stored: &[Value], sent: &[Value]) -> Value {
        match (ids(stored, self.model), ids(sent, self.model)) {
            (Some(old), Some(new)) => self.by_id(path, (stored, &old), (sent, &new)),
            _ => self.by_position(path, stored, sent),
        }
    }

    fn by_id(
        &mut self,
        path: &str,
        stored: (&[Value], &[Value]),
        sent: (&[Value], &[Value]),
    ) -> Value {
        let mut result = Vec::new();
        for (index, (old, id)) in stored.0.iter().zip(stored.1).enumerate() {
            let here = element(path, index);
            match sent.1.iter().position(|other| other == id) {
                Some(at) => result.extend(self.both(&here, old, &sent.0[at], "")),
                None => result.extend(self.unsent(&here, old)),
            }
        }
        for (new, id) in sent.0.iter().zip(sent.1) {
            if !stored.1.contains(id) {
                let here = element(path, result.len());
                result.extend(self.added_element(&here, new, self.is_future(new)));
            }
        }
        Value::Array(result)
    }

    fn by_position(&mut self, path: &str, stored: &[Value], sent: &[Value]) -> Value {
        let empty = || Value::Object(Map::new());
        let identified = ids(sent, self.model).is_some();
        let mut result = Vec::new();
        let mut refused = false;
        for index in 0..stored.len().max(sent.len()) {
            let here = element(path, index);
            match (stored.get(index), sent.get(index)) {
                (Some(old), None) => result.extend(self.unsent(&here, old)),
                (Some(old), Some(Value::Null))
                    if !old.is_null() && self.mode == Mode::ServerIsMaster =>
                {
                    result.extend(self.nulled(&here, old));
                }
                (Some(old), Some(new)) if identified && self.are_two_things(old, new) => {
                    result.extend(self.replaced(&here, old, new, ""));
                }
                (Some(old), Some(new)) => {
                    result.push(self.both(&here, old, new, "").unwrap_or_else(empty))
                }
                (None, Some(new)) => {
                    refused = self.is_future(new) || refused && !identified;
                    result.extend(self.added_element(&here, new, refused));
                }
                (None, None) => {}
            }
        }
        Value::Array(result)
    }

    /// Timestamped elements of two ids. Their times have nothing to do with each other: were the
    /// stored one kept as newer, the sent one could be new in the next merge.
    fn are_two_things(&self, stored: &Value, sent: &Value) -> bool {
        let timed = time(stored, self.model).is_some() && time(sent, self.model).is_some();
        let (old, new) = (&stored[&self.model.id_field], &sent[&self.model.id_field]);
        timed && (old.is_string() || old.is_number()) && old != new
    }

    /// A sent value as it enters the document, without nulls and values from the future.
    fn taken(&self, sent: &Value) -> Value {
        match sent {
            _ if time(sent, self.model).is_some() => sent.clone(),
            Value::Object(members) => members
                .iter()
                .filter(|(_, value)| !self.is_nothing(value) && !self.is_future(value))
                .map(|(key, value)| (key.clone(), self.taken(value)))
                .collect(),
            Value::Array(items) if self.model.arrays == Arrays::Matched => items
                .iter()
                .take_while(|item| ids(items, self.model).is_some() || !self.is_future(item))
                .filter(|item| !self.is_future(item))
                .map(|item| self.taken(item))
                .collect(),
            scalar => scalar.clone(),
        }
    }
}
