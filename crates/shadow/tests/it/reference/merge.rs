//! Merge, naively: one function per rule, values copied freely.

use antumbra_shadow::{Arrays, Mode, Model};
use serde_json::{Map, Value};

use super::value::{all_names, element, ids, instant, is_container, leaves, member, time, unit};

/// What happened to one leaf; an empty note is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) pointer: String,
    pub(crate) verdict: &'static str,
    pub(crate) note: &'static str,
}

/// What a merge gave.
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
    fn tell(&mut self, pointer: &str, verdict: &'static str, note: &'static str) {
        self.verdicts.push(Line {
            pointer: pointer.to_owned(),
            verdict,
            note,
        });
    }

    fn tell_leaves(
        &mut self,
        path: &str,
        value: &Value,
        verdict: &'static str,
        note: &'static str,
    ) {
        for (pointer, _) in leaves(path, value, self.model) {
            self.tell(&pointer, verdict, note);
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
                (None, None | Some(Value::Null)) => None,
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

    /// Null, or an object of nothing but nulls that finds no members it could speak of.
    fn says_null(&self, stored: &Value, sent: &Value) -> bool {
        let has_members = stored
            .as_object()
            .is_some_and(|members| !members.is_empty());
        let plain = time(stored, self.model).is_none();
        sent.is_null() || self.taken(sent).is_none() && !(plain && has_members)
    }

    /// A scalar timestamp field in a plain object is no timestamp, or the object would not be plain.
    fn member_note(&self, path: &str, key: &str, sent: &Value) -> &'static str {
        let noted = !path.is_empty() && key == self.model.timestamp_field && !is_container(sent);
        if noted { "not a timestamp" } else { "" }
    }

    fn unsent(&mut self, path: &str, stored: &Value) -> Option<Value> {
        let keep = self.mode != Mode::ClientIsMaster;
        self.tell_leaves(
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
        self.tell_leaves(path, stored, verdict, note);
        keep.then(|| stored.clone())
    }

    /// Something sent where nothing was stored. Nothing comes of an object of only nulls.
    fn added(&mut self, path: &str, sent: &Value, note: &'static str) -> Option<Value> {
        let (value, clamped) = self.taken(sent)?;
        if time(sent, self.model).is_some() {
            self.tell(path, "added", clamped);
            return Some(value);
        }
        match sent {
            Value::Object(members) if !members.is_empty() => {
                self.members(path, &Value::Null, sent);
            }
            Value::Array(items) if !items.is_empty() && self.model.arrays == Arrays::Matched => {
                for (index, item) in items.iter().enumerate() {
                    let here = element(path, index);
                    if self.added(&here, item, "").is_none() {
                        self.tell(&here, "added", "");
                    }
                }
            }
            _ => self.tell(path, "added", note),
        }
        Some(value)
    }

    /// Something stored and something sent, which is not a null member.
    fn both(
        &mut self,
        path: &str,
        stored: &Value,
        sent: &Value,
        note: &'static str,
    ) -> Option<Value> {
        match (time(stored, self.model), time(sent, self.model)) {
            (Some(old), Some(_)) => {
                let (sent, note) = self
                    .taken(sent)
                    .expect("timestamped values are taken whole");
                let new = time(&sent, self.model).expect("clamping leaves a time");
                let verdict = match new.cmp(&old) {
                    std::cmp::Ordering::Greater => "updated",
                    std::cmp::Ordering::Equal => "kept: equal",
                    std::cmp::Ordering::Less => "kept: stale",
                };
                self.tell(path, verdict, note);
                return Some(if new > old { sent } else { stored.clone() });
            }
            (None, None) => {}
            _ => return self.replaced(path, sent, note),
        }
        match (stored, sent) {
            (Value::Object(old), Value::Object(new)) => {
                if old.is_empty() && new.is_empty() {
                    self.tell(path, "kept: same", "");
                } else if old.is_empty() && self.taken(sent).is_none() {
                    self.tell(path, "kept: unsent", "");
                }
                let result = self.members(path, stored, sent);
                (!result.is_empty() || new.is_empty()).then_some(Value::Object(result))
            }
            (Value::Array(old), Value::Array(new)) if self.model.arrays == Arrays::Matched => {
                if old.is_empty() && new.is_empty() {
                    self.tell(path, "kept: same", "");
                }
                Some(self.arrays(path, old, new))
            }
            _ if stored == sent => {
                self.tell(path, "kept: same", note);
                Some(stored.clone())
            }
            _ => self.replaced(path, sent, note),
        }
    }

    /// One entry for all that is replaced, so it also carries the notes of what has no entry.
    fn replaced(&mut self, path: &str, sent: &Value, note: &'static str) -> Option<Value> {
        let within = self.notes_within(sent);
        let first = ["clamped", "not a timestamp"]
            .into_iter()
            .find(|n| within.contains(n));
        self.tell(path, "updated", first.unwrap_or(note));
        self.taken(sent).map(|(value, _)| value)
    }

    fn notes_within(&self, sent: &Value) -> Vec<&'static str> {
        if time(sent, self.model).is_some() {
            return vec![self.clamped(sent).1];
        }
        let mut notes = Vec::new();
        for (key, value) in sent.as_object().into_iter().flatten() {
            let scalar = !is_container(value) && !value.is_null();
            if *key == self.model.timestamp_field && scalar {
                notes.push("not a timestamp");
            }
            notes.extend(self.notes_within(value));
        }
        // In an array that is one value nothing is looked at.
        let matched = self.model.arrays == Arrays::Matched;
        for item in sent.as_array().filter(|_| matched).into_iter().flatten() {
            notes.extend(self.notes_within(item));
        }
        notes
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
                result.extend(self.added(&element(path, result.len()), new, ""));
            }
        }
        Value::Array(result)
    }

    fn by_position(&mut self, path: &str, stored: &[Value], sent: &[Value]) -> Value {
        let empty = || Value::Object(Map::new());
        let identified = ids(sent, self.model).is_some();
        let mut result = Vec::new();
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
                    result.extend(self.replaced(&here, new, ""));
                }
                (Some(old), Some(new)) => {
                    result.push(self.both(&here, old, new, "").unwrap_or_else(empty))
                }
                (None, Some(new)) => {
                    let value = self.added(&here, new, "");
                    if value.is_none() {
                        self.tell(&here, "added", "");
                    }
                    result.push(value.unwrap_or_else(empty));
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

    /// A sent value as it enters the document, and the note that belongs to it: times clamped, null
    /// members gone, and nothing at all for an object that held only nulls.
    fn taken(&self, sent: &Value) -> Option<(Value, &'static str)> {
        if time(sent, self.model).is_some() {
            return Some(self.clamped(sent));
        }
        let value = match sent {
            Value::Object(members) => {
                let stripped: Map<String, Value> = members
                    .iter()
                    .filter(|(_, value)| !value.is_null())
                    .filter_map(|(key, value)| Some((key.clone(), self.taken(value)?.0)))
                    .collect();
                if stripped.is_empty() && !members.is_empty() {
                    return None;
                }
                Value::Object(stripped)
            }
            Value::Array(items) if self.model.arrays == Arrays::Matched => {
                let item = |item| {
                    self.taken(item)
                        .map_or(Value::Object(Map::new()), |(value, _)| value)
                };
                items.iter().map(item).collect()
            }
            scalar => scalar.clone(),
        };
        Some((value, ""))
    }

    fn clamped(&self, sent: &Value) -> (Value, &'static str) {
        let field = &sent[&self.model.timestamp_field];
        let bound = self
            .model
            .max_future
            .map(|bound| self.now + bound.as_nanos() as i128);
        if !matches!((instant(field), bound), (Some(time), Some(bound)) if time > bound) {
            return (sent.clone(), "");
        }
        let now = match field.as_i64() {
            Some(written) => Value::from((self.now / i128::from(unit(written))) as i64),
            None => {
                let now =
                    jiff::Timestamp::from_nanosecond(self.now).expect("a time within the calendar");
                Value::from(now.to_string())
            }
        };
        let mut value = sent.clone();
        value[&self.model.timestamp_field] = now;
        (value, "clamped")
    }
}
