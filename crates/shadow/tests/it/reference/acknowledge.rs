//! Acknowledge, naively.

use antumbra_shadow::{Arrays, Model};
use serde_json::{Map, Value};

use super::value::{all_names, element, ids, member, time, without_time};

/// The remaining desired document, and the acknowledged pointers.
pub(crate) struct Acknowledged {
    pub(crate) remaining: Value,
    pub(crate) acknowledged: Vec<String>,
}

/// Removes the reported values from the desired document.
pub(crate) fn acknowledge(reported: &Value, desired: &Value, model: &Model) -> Acknowledged {
    let mut walk = Walk {
        model,
        acknowledged: Vec::new(),
    };
    let remaining = Value::Object(walk.members("", desired, reported, None));
    Acknowledged {
        remaining,
        acknowledged: walk.acknowledged,
    }
}

struct Walk<'m> {
    model: &'m Model,
    acknowledged: Vec<String>,
}

impl Walk<'_> {
    /// Remaining members of a desired object, without one of them.
    fn members(
        &mut self,
        path: &str,
        desired: &Value,
        reported: &Value,
        but: Option<&str>,
    ) -> Map<String, Value> {
        let mut remaining = Map::new();
        for key in all_names(desired, &Value::Null) {
            if but == Some(key.as_str()) {
                continue;
            }
            if let Some(left) = self.value(&member(path, &key), &desired[&key], reported.get(&key))
            {
                remaining.insert(key, left);
            }
        }
        remaining
    }

    /// Rest of a desired value; `None` if all of it is acknowledged.
    fn value(&mut self, path: &str, desired: &Value, reported: Option<&Value>) -> Option<Value> {
        let Some(reported) = reported else {
            return Some(desired.clone());
        };
        let whole = match (desired, reported) {
            (Value::Object(_), Value::Object(_)) if time(desired, self.model).is_some() => {
                without_time(desired, self.model) == without_time(reported, self.model)
            }
            (Value::Object(members), Value::Object(_)) if !members.is_empty() => {
                let left = self.members(path, desired, reported, None);
                return (!left.is_empty()).then_some(Value::Object(left));
            }
            (Value::Array(items), Value::Array(others)) if !items.is_empty() => {
                match (ids(items, self.model), ids(others, self.model)) {
                    _ if self.model.arrays == Arrays::Whole => {
                        same_but_times(desired, reported, self.model)
                    }
                    (Some(_), Some(_)) => return self.by_id(path, items, others),
                    _ => return self.by_position(path, items, others),
                }
            }
            _ => desired == reported,
        };
        if !whole {
            return Some(desired.clone());
        }
        self.acknowledged.push(path.to_owned());
        None
    }

    fn by_position(&mut self, path: &str, desired: &[Value], reported: &[Value]) -> Option<Value> {
        let is_reached = |index: &usize| {
            let other = reported.get(*index);
            other.is_some_and(|other| same_but_times(&desired[*index], other, self.model))
        };
        let kept = (0..desired.len()).rev().find(|index| !is_reached(index));
        let Some(last) = kept else {
            self.acknowledged.push(path.to_owned());
            return None;
        };
        let reached = (last + 1..desired.len()).map(|index| element(path, index));
        self.acknowledged.extend(reached);
        Some(Value::Array(desired[..=last].to_vec()))
    }

    fn by_id(&mut self, path: &str, desired: &[Value], reported: &[Value]) -> Option<Value> {
        let id = &self.model.id_field;
        let mut remaining = Vec::new();
        for (index, item) in desired.iter().enumerate() {
            let here = element(path, index);
            let other = reported.iter().find(|other| other[id] == item[id]);
            let plain = time(item, self.model).is_none();
            let more = item.as_object().is_some_and(|members| members.len() > 1);
            match other {
                Some(other) if plain && more => {
                    let mut left = self.members(&here, item, other, Some(id));
                    if !left.is_empty() {
                        left.insert(id.clone(), item[id].clone());
                        remaining.push(Value::Object(left));
                    }
                }
                Some(_) if plain => self.acknowledged.push(here),
                other => remaining.extend(self.value(&here, item, other)),
            }
        }
        (!remaining.is_empty()).then_some(Value::Array(remaining))
    }
}

/// Returns `true` if two values are deeply equal but for the times of timestamped values.
fn same_but_times(desired: &Value, reported: &Value, model: &Model) -> bool {
    if time(desired, model).is_some() {
        return reported.is_object()
            && without_time(desired, model) == without_time(reported, model);
    }
    let reported = match time(reported, model) {
        // A desired empty object is acknowledged only by a reported empty object.
        Some(_) if *desired != Value::Object(Map::new()) => &without_time(reported, model),
        _ => reported,
    };
    match (desired, reported) {
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_but_times(a, b, model))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(k, a)| b.get(k).is_some_and(|b| same_but_times(a, b, model)))
        }
        _ => desired == reported,
    }
}
